"""What is kept of every call, and what it cost: the ledger, recorded calls, the price book."""

from famnb.record.ledger import Ledger
from famnb.record.price import Cost
from famnb.record.price_book import PriceBook, prices
from famnb.record.recorded_call import RecordedCall

__all__ = ["Cost", "Ledger", "PriceBook", "RecordedCall", "prices"]
