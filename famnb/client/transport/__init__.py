"""The way to a service and back: requests over kept connections, answers with the times at which they came."""

from famnb.client.transport.pool import StampedTransport as StampedTransport
from famnb.client.transport.sender import MAX_CONNECTIONS as MAX_CONNECTIONS
from famnb.client.transport.sender import RequestSender as RequestSender
from famnb.client.transport.sender import Response as Response
from famnb.client.transport.sender import origin_of as origin_of
