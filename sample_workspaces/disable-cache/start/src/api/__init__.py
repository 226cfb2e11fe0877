"""The API behind the customers' pages: fetches from the upstream, sums up, and makes pages of it."""
