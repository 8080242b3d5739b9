"""The board over HTTP: an API for programs, and a page for people.

``server.py`` takes connections, ``connection.py`` is one of them, ``wire.py`` reads HTTP, ``security.py`` says who may
come in, ``routes.py`` is the table of routes with what each takes and answers, and ``api.py`` translates each into one
call of the service.
"""
