"""The board over HTTP: an API for programs and a page for people.

``server.py`` accepts connections, ``connection.py`` handles one of them, ``wire.py`` parses HTTP, and ``security.py``
checks hosts and origins. ``routes.py`` lists the routes with their fields and responses; ``api.py`` translates each
route into one service call.
"""
