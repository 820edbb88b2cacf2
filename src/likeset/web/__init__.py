"""The page: a store of studies in the browser. ``likeset serve`` runs it, :mod:`likeset.web.app` makes the application.

The process that answers requests never computes: studies live in worker processes (:mod:`~likeset.web.worker`), and
answers are kept and shown until newer ones are there. Everything works without JavaScript, and is also there as JSON.
"""
