"""The page: a store of studies in the browser. ``likeset serve`` runs it.

The process that answers requests never computes: studies live in worker processes (:mod:`~likeset.web.worker`), answers are
kept and shown until newer ones are there. Everything works without JavaScript, and everything is also there as JSON.
"""

from likeset.web.app import create_app
from likeset.web.serving import serve

__all__ = ["create_app", "serve"]
