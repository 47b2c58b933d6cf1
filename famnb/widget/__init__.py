"""The notebook's widgets: the composer, live views of streams, and replies shown as transcripts."""

from famnb.widget.completion import install_completion
from famnb.widget.composer.composer import Composer
from famnb.widget.live.output import install
from famnb.widget.live.reply_view import viewer

__all__ = ["Composer", "install", "install_completion", "viewer"]
