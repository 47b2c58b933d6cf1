"""What may be asked: one pydantic model per endpoint; the one place where a field, its default and its limits stand."""

from famnb.request.base import Request
from famnb.request.chat import ChatRequest
from famnb.request.messages import MessagesRequest
from famnb.request.responses import ResponsesRequest
from famnb.request.tools import tool
from famnb.request.web import WebChatRequest

__all__ = ["ChatRequest", "MessagesRequest", "Request", "ResponsesRequest", "WebChatRequest", "tool"]
