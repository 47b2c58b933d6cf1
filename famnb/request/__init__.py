"""Requests: one pydantic model an endpoint, where each field, default and limit of the API stands once."""

from famnb.request.base import Request
from famnb.request.chat import ChatRequest
from famnb.request.messages import MessagesRequest
from famnb.request.responses import ResponsesRequest
from famnb.request.tools import tool
from famnb.request.web import WebChatRequest

__all__ = ["ChatRequest", "MessagesRequest", "Request", "ResponsesRequest", "WebChatRequest", "tool"]
