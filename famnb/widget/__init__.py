"""The notebook's widgets: the composer, live views of streams, and replies shown as transcripts."""

from famnb.completion import install_completion
from famnb.widget.composer.composer import Composer
from famnb.widget.live.reply_view import viewer
from famnb.widget.runtime.output import install

__all__ = ["Composer", "install", "install_completion", "viewer"]
