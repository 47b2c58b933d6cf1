"""What is kept of every call, and what it cost: the ledger, recorded calls, the price book."""

from famnb.record.call import Call
from famnb.record.ledger import Ledger
from famnb.record.price import Cost
from famnb.record.pricebook import PriceBook, prices

__all__ = ["Call", "Cost", "Ledger", "PriceBook", "prices"]
