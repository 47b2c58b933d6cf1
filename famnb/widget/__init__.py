"""The notebook's controls and live views: the composer, replies that show themselves, streams under a cell."""

from famnb.widget.composer.composer import Composer
from famnb.widget.live.live_view import viewer
from famnb.widget.live.output import install

__all__ = ["Composer", "install", "viewer"]
