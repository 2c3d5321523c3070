# SPDX-License-Identifier: MIT
"""Errors as Discord's REST API words them."""

RESPONSES = {
    10002: (404, "Unknown Application"),
    10008: (404, "Unknown Message"),
    10015: (404, "Unknown Webhook"),
    10062: (404, "Unknown interaction"),
    20012: (403, "You are not authorized to perform this action on this "
                 "application"),
    30046: (400, "Maximum number of edits to messages older than 1 hour "
                 "reached. Try again later"),
    40005: (413, "Request entity too large"),
    40060: (400, "Interaction has already been acknowledged."),
    40094: (400, "This interaction has reached the maximum number of "
                 "follow-up messages"),
    40333: (403, "internal network error"),
    50006: (400, "Cannot send an empty message"),
    50027: (401, "Invalid Webhook Token"),
    50035: (400, "Invalid Form Body"),
    50109: (400, "The request body contains invalid JSON."),
}


class ApiError(Exception):
    """An answer of the REST API that is not a success."""

    def __init__(self, code, status=None, message=None, errors=None):
        known_status, known_message = RESPONSES.get(code, (400, "Error"))
        self.status = status or known_status
        self.code = code
        self.message = message or known_message
        self.errors = errors
        super().__init__(f"{self.status} {self.code} {self.message}")

    def body(self):
        """Return the JSON object of the answer."""
        body = {"message": self.message, "code": self.code}
        if self.errors:
            body["errors"] = self.errors
        return body


class FormErrors:
    """Collects the errors of one body, each at its path."""

    def __init__(self):
        self.tree = {}
        self.flat = []

    def add(self, path, code, message):
        """Note that the value at `path` (a tuple of keys) is wrong."""
        node = self.tree
        for key in path:
            node = node.setdefault(str(key), {})
        node.setdefault("_errors", []).append(
            {"code": code, "message": message})
        where = ".".join(map(str, path)) or "body"
        self.flat.append(f"{where}: {message}")

    def throw(self):
        """Raise 50035 when there was any error."""
        if self.flat:
            raise ApiError(50035, errors=self.tree)

    # The checks below return whether the value may be used further.

    def text(self, path, value, low, high, required=False):
        """Check a string's length in code points; None is absent."""
        if value is None:
            if required:
                self.add(path, "BASE_TYPE_REQUIRED",
                         "This field is required")
            return False
        if not isinstance(value, str):
            self.add(path, "STRING_TYPE_CONVERT",
                     "Could not interpret value as string.")
            return False
        if low > 0 and not value:
            self.add(path, "BASE_TYPE_REQUIRED", "This field is required")
            return False
        if not low <= len(value) <= high:
            if low > 0:
                self.add(path, "BASE_TYPE_BAD_LENGTH",
                         f"Must be between {low} and {high} in length.")
            else:
                self.add(path, "BASE_TYPE_MAX_LENGTH",
                         f"Must be {high} or fewer in length.")
            return False
        return True

    def array(self, path, value, low, high, required=False):
        """Check an array's length; None is absent."""
        if value is None:
            if required:
                self.add(path, "BASE_TYPE_REQUIRED",
                         "This field is required")
            return False
        if not isinstance(value, list):
            self.add(path, "LIST_TYPE_CONVERT",
                     "Only iterables may be used in a ListType")
            return False
        if not low <= len(value) <= high:
            self.add(path, "BASE_TYPE_BAD_LENGTH",
                     f"Must be between {low} and {high} in length.")
            return False
        return True

    def whole(self, path, value, low, high, required=False):
        """Check an integer; None is absent."""
        if value is None:
            if required:
                self.add(path, "BASE_TYPE_REQUIRED",
                         "This field is required")
            return False
        if isinstance(value, bool) or not isinstance(value, int):
            self.add(path, "NUMBER_TYPE_COERCE",
                     f'Value "{value}" is not int.')
            return False
        if not low <= value <= high:
            self.add(path, "NUMBER_TYPE_MAX" if value > high
                     else "NUMBER_TYPE_MIN",
                     f"int value should be between {low} and {high}.")
            return False
        return True

    def flag(self, path, value):
        """Check a boolean; None is absent."""
        if value is not None and not isinstance(value, bool):
            self.add(path, "BOOLEAN_TYPE_CONVERT",
                     "Must be either true or false.")

    def struct(self, path, value):
        """Check that the value is an object."""
        if not isinstance(value, dict):
            self.add(path, "DICT_TYPE_CONVERT",
                     "Only dictionaries may be used in a DictType")
            return False
        return True
