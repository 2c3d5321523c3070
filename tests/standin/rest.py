# SPDX-License-Identifier: MIT
"""The part of Discord's REST API that Inline calls."""

import json
import re
import urllib.parse

import schema
from callbacks import acknowledge, callback_response
from chat import create_message, delete_message, edit_message, message_json
from errors import ApiError, FormErrors
from files import parse_multipart
from forms import check_commands
from state import FAILED, PENDING, REFUSED

USER_AGENT = re.compile(r"DiscordBot \([^\s,()]+, [^\s,()]+\)")
MAX_REQUEST = 25 << 20
MAX_FOLLOWUPS = 5
API = r"/api/v10"
HOOK = API + r"/webhooks/(?P<app>\d+)/(?P<token>[^/]+)"
MESSAGE = HOOK + r"/messages/(?P<message>@original|\d+)"
APPLICATION = API + r"/applications/(?P<app>\d+)"

ROUTES = (
    ("PATCH", MESSAGE, "edit"),
    ("GET", MESSAGE, "get"),
    ("DELETE", MESSAGE, "delete"),
    ("POST", HOOK, "followup"),
    ("POST", API + r"/interactions/(?P<id>\d+)/(?P<token>[^/]+)/callback",
     "callback"),
    ("PUT", APPLICATION + r"/commands", "commands"),
    ("GET", APPLICATION + r"/commands", "commands"),
    ("PUT", APPLICATION + r"/guilds/(?P<guild>\d+)/commands", "commands"),
    ("GET", APPLICATION + r"/guilds/(?P<guild>\d+)/commands", "commands"),
    ("GET", API + r"/applications/@me", "me"),
    ("PATCH", API + r"/applications/@me", "me"),
)
ROUTES = tuple((method, re.compile(pattern + r"\Z"), name)
               for method, pattern, name in ROUTES)
SCHEMAS = {"edit": schema.EDIT, "followup": schema.FOLLOWUP,
           "commands": schema.COMMANDS}


def match(method, path):
    """Return (route name, parameters) of a request, or None."""
    for wanted, pattern, name in ROUTES:
        found = pattern.match(path) if wanted == method else None
        if found:
            parameters = {key: urllib.parse.unquote(value)
                          for key, value in found.groupdict().items()}
            return name, parameters
    return None


class Request:
    """One request to the REST API, as it is read and as it is logged."""

    def __init__(self, number, method, path, query, headers, body):
        self.number = number
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.route = None
        self.parameters = {}
        self.interaction = None
        self.payload = None
        self.files = {}
        self.schema_errors = []
        self.fault = None
        self.status = None
        self.answer = None

    def read(self):
        """Parse the body into `payload` and `files`; raises ApiError."""
        if len(self.body) > MAX_REQUEST:
            raise ApiError(40005)
        kind = self.headers.get("Content-Type", "")
        text = self.body
        if kind.split(";")[0].strip().lower() == "multipart/form-data":
            parts = parse_multipart(kind, self.body)
            text = parts.pop("payload_json", (None, None, b"{}"))[2]
            for name, part in parts.items():
                number = re.fullmatch(r"files\[(\d)\]", name)
                if not number or part[0] is None:
                    raise ApiError(50035, errors={name: {"_errors": [{
                        "code": "UNKNOWN_PART",
                        "message": "Not payload_json and not a file"}]}})
                self.files[int(number[1])] = part
        elif kind.split(";")[0].strip().lower() != "application/json":
            raise ApiError(50035, message='Expected "Content-Type" header '
                           "to be one of {'application/json', "
                           "'multipart/form-data'}.")
        try:
            self.payload = json.loads(text.decode())
        except (ValueError, RecursionError):
            raise ApiError(50109)

    def view(self):
        """Return what the control API shows of this request."""
        headers = {key.lower(): value for key, value in self.headers.items()
                   if key.lower() != "authorization"}
        return {
            "number": self.number,
            "time": self.time,
            "ms": self.ms,
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "headers": headers,
            "route": self.route,
            "interaction": self.interaction and self.interaction.id,
            "payload": self.payload,
            "files": [{"n": n, "filename": part[0], "content_type": part[1],
                       "size": len(part[2])}
                      for n, part in sorted(self.files.items())],
            "schema_errors": self.schema_errors,
            "fault": self.fault,
            "status": self.status,
            "answer": self.answer,
        }

    def done(self, started, ended):
        """Note the times and let go of what is large."""
        self.time = started
        self.ms = round((ended - started) * 1000, 2)
        self.body = None
        self.files = {n: (part[0], part[1], _Length(len(part[2])))
                      for n, part in self.files.items()}


class _Length:
    """Stands for bytes of which only the length is kept."""

    def __init__(self, length):
        self._length = length

    def __len__(self):
        return self._length


class Rest:
    """Answers requests out of, and into, the store."""

    def __init__(self, store, schemas):
        self.store = store
        self.schemas = schemas
        self.verify_endpoint = None

    def find_interaction(self, request):
        """Return the interaction whose token the request names, or None."""
        with self.store.lock:
            return self.store.tokens.get(request.parameters.get("token"))

    def answer(self, request):
        """Carry a request out; returns (status, JSON value or None).

        Raises ApiError, after which nothing has changed.
        """
        if not USER_AGENT.match(request.headers.get("User-Agent", "")):
            raise ApiError(40333)
        if request.route in ("commands", "me"):
            self._authorize(request)
        if request.method in ("POST", "PUT", "PATCH"):
            request.read()
            self._check_schema(request)
        return getattr(self, "_" + request.route)(request)

    def _check_schema(self, request):
        payload = request.payload
        pointer = SCHEMAS.get(request.route)
        if request.route == "callback":
            request.schema_errors = self.schemas.answer_errors(payload)
        elif pointer:
            request.schema_errors = self.schemas.errors(pointer, payload)
        for error in request.schema_errors:
            self.store.violate("schema", error, request.interaction,
                               request.number)

    def _authorize(self, request):
        given = request.headers.get("Authorization", "")
        if given != "Bot " + self.store.identity.bot_token:
            raise ApiError(0, status=401, message="401: Unauthorized")
        app = request.parameters.get("app")
        if app and app != self.store.identity.application_id:
            raise ApiError(20012)

    def _hook(self, request):
        """Return the interaction of a webhook route; raises ApiError."""
        store = self.store
        interaction = request.interaction
        if (interaction is None or request.parameters["app"]
                != store.identity.application_id):
            raise ApiError(10015)
        age = store.clock.now() - interaction.created
        if age > store.settings.token_life:
            interaction.dead_uses += 1
            if interaction.dead_uses > 1:
                store.violate("dead-token", "used again after 50027",
                              interaction, request.number)
            raise ApiError(50027)
        if interaction.state == PENDING:
            store.violate("early", f"{request.route} before the interaction "
                          "was answered", interaction, request.number)
            raise ApiError(10015)
        if interaction.state in (FAILED, REFUSED):
            raise ApiError(10015)
        return interaction

    def _message(self, request, interaction):
        name = request.parameters["message"]
        if name == "@original":
            if interaction.original is None:
                raise ApiError(10015)
            message = interaction.original
        else:
            message = self.store.messages.get(name)
            mine = message is not None and (
                name in interaction.messages
                or message is interaction.original)
            if not mine:
                raise ApiError(10008)
        if message.deleted:
            raise ApiError(10008)
        return message

    def _object(self, request):
        if not isinstance(request.payload, dict):
            errors = FormErrors()
            errors.struct((), request.payload)
            errors.throw()
        return request.payload

    def _edit(self, request):
        with self.store.lock:
            interaction = self._hook(request)
            message = self._message(request, interaction)
            edit_message(self.store, interaction, message,
                         self._object(request), request.files, "edit",
                         request.number)
            return 200, message_json(self.store, message)

    def _get(self, request):
        with self.store.lock:
            interaction = self._hook(request)
            return 200, message_json(self.store,
                                     self._message(request, interaction))

    def _delete(self, request):
        with self.store.lock:
            interaction = self._hook(request)
            message = self._message(request, interaction)
            delete_message(self.store, message, "app", interaction)
            return 204, None

    def _followup(self, request):
        store = self.store
        with store.lock:
            interaction = self._hook(request)
            payload = self._object(request)
            original = interaction.original
            if original is not None and original.loading:
                store.violate("followup-before-edit", "a follow-up right "
                              "after a deferral edits the deferred message",
                              interaction, request.number)
                edit_message(store, interaction, original, payload,
                             request.files, "followup", request.number)
                return 200, message_json(store, original)
            if interaction.user_install_only and (
                    interaction.followups >= MAX_FOLLOWUPS):
                raise ApiError(40094)
            flags = payload.get("flags")
            ephemeral = isinstance(flags, int) and bool(flags & 64)
            message = create_message(store, interaction, payload,
                                     request.files, ephemeral, "followup",
                                     request.number)
            interaction.followups += 1
            store.changed(interaction)
            return 200, message_json(store, message)

    def _callback(self, request):
        store = self.store
        with store.lock:
            interaction = request.interaction
            if (interaction is None
                    or interaction.id != request.parameters["id"]):
                raise ApiError(10062)
            message = acknowledge(store, interaction, request.payload,
                                  request.files, "callback", request.number)
            interaction.answer_ms = round(
                (interaction.answered_at - interaction.sent_at) * 1000, 2)
            if request.query.get("with_response", [""])[0] == "true":
                return 200, callback_response(store, interaction, message)
            return 204, None

    def _commands(self, request):
        store = self.store
        scope = request.parameters.get("guild", "global")
        with store.lock:
            if request.method == "PUT":
                commands = request.payload or []
                errors = FormErrors()
                check_commands(commands, errors)
                check_installs(commands, store.installs, errors)
                errors.throw()
                put_commands(store, scope, commands)
            return 200, store.commands.get(scope, [])

    def _me(self, request):
        store = self.store
        if request.method == "PATCH":
            url = self._object(request).get("interactions_endpoint_url")
            if url is not None:
                problem = self.verify_endpoint(url)
                if problem:
                    errors = FormErrors()
                    errors.add(("interactions_endpoint_url",),
                               "APPLICATION_INTERACTIONS_ENDPOINT_URL_INVALID",
                               "The specified interactions endpoint URL could"
                               f" not be verified: {problem}")
                    errors.throw()
                with store.lock:
                    store.endpoint = url
        return 200, {
            "id": store.identity.application_id,
            "name": "Inline",
            "verify_key": store.identity.public_key,
            "integration_types_config": {
                str(context): {"oauth2_install_params": {
                    "scopes": ["applications.commands"], "permissions": "0"}}
                for context in sorted(store.installs)},
            "interactions_endpoint_url": store.endpoint or None,
        }


def check_installs(commands, installs, errors):
    """Check that commands ask for what the application allows."""
    for index, command in enumerate(commands):
        types = command.get("integration_types") or []
        for at, one in enumerate(types):
            if one not in installs:
                errors.add((index, "integration_types", at),
                           "APPLICATION_COMMAND_INTEGRATION_TYPE",
                           "The application does not support this "
                           "installation context")


def put_commands(store, scope, commands):
    """Replace the commands of one scope; names keep their ids."""
    with store.lock:
        old = {(one["type"], one["name"]): one["id"]
               for one in store.commands.get(scope, [])}
        kept = []
        for command in commands:
            kind = command.get("type", 1)
            one = dict(command, type=kind, version=store.snowflake(),
                       application_id=store.identity.application_id)
            one["id"] = old.get((kind, command["name"])) or store.snowflake()
            if scope != "global":
                one["guild_id"] = scope
            kept.append(one)
        store.commands[scope] = kept
        store.publish("commands", scope)
