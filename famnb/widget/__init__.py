"""The notebook's controls and live views: the composer, replies that show themselves, streams under a cell."""

from famnb.widget.composer.composer import Composer
from famnb.widget.view.live import viewer
from famnb.widget.view.shown import install

__all__ = ["Composer", "install", "viewer"]
