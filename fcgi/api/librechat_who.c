/* SPDX-License-Identifier: MIT */
/*
 * Senders of LibreChat's requests, in three generations: with an API key, with
 * a token that LibreChat has signed, or without credentials; and owners of
 * files.
 */
#include "api/librechat_who.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "api/app.h"
#include "api/gate.h"
#include "contract/librechat/libre_token.h"
#include "server/serve.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/file.h"

#define KEYS_FILE_MAX 65536
#define KEY_PREFIX "il_"
#define CALL_ID_MAX 128 /* a UUID has 36 */
#define CALL_NAME_BYTES 32
/* A call waits for less in the queues of nginx and il-api. */
#define KEEP_US INT64_C(300000000)
#define CALLS_MAX 2048		  /* runs and cancels */
#define OWN_CALLS_MAX 256	  /* cancels of one owner */
#define SEAL_FILE "librechat.key" /* no id of a file has this form */

/* The first process that needs the key writes it.  All of them have the same
 * one until then.  A key of another length was not written to its end. */
const unsigned char *
librechat_seal(struct api_app *app)
{
	unsigned char key[sizeof(app->librechat_seal)];
	auto_close int fd = -1;

	if (app->nodes != NULL)
		return app->librechat_seal;
	fd = openat(app->store.dir, SEAL_FILE,
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd >= 0 && read(fd, key, sizeof(key)) == (ssize_t)sizeof(key))
		memcpy(app->librechat_seal, key, sizeof(key));
	else if (fd < 0 ||
	    pwrite(fd, app->librechat_seal, sizeof(key), 0) !=
		(ssize_t)sizeof(key) ||
	    fsync(fd) != 0)
		log_warn("librechat: %s: %s: a restart ends the programs that "
			 "call tools",
		    SEAL_FILE, strerror(errno));
	return app->librechat_seal;
}

/* An entry of the table: a run (with its process), or a cancel. */
struct librechat_call {
	unsigned char name[CALL_NAME_BYTES]; /* made of owner and id */
	unsigned char owner[TOKENS_HASH_LEN];
	int64_t writer;	  /* shared_file_writer(); 0: it is a cancel */
	int64_t since_us; /* monotonic; 0: the entry is free */
};

/* The connection of this process's call, for the signal; -1: it has none. */
static volatile sig_atomic_t call_fd = -1;
static volatile sig_atomic_t call_is_cancelled;

/* The run's client counts as gone, which ends the run or its wait for a
 * cell. */
static void
call_on_cancel(int number)
{
	(void)number;
	call_is_cancelled = 1;
	if (call_fd >= 0)
		(void)shutdown((int)call_fd, SHUT_RD);
}

struct librechat_calls {
	int fd; /* a file for the lock that every access has */
	struct librechat_call *items;
};

static struct librechat_calls *
calls_open(struct err *err)
{
	const struct sigaction on_cancel = { .sa_handler = call_on_cancel,
		.sa_flags = SA_RESTART };
	struct librechat_calls *calls = xcalloc(1, sizeof(*calls));

	calls->items = shared_file_open(NULL, CALLS_MAX * sizeof(*calls->items),
	    err);
	calls->fd = memfd_create("calls", MFD_CLOEXEC);
	if (calls->items != NULL && calls->fd >= 0 &&
	    sigaction(SIGUSR1, &on_cancel, NULL) == 0)
		return calls;
	free(calls);
	(void)err_system(err, "the table of calls");
	return NULL;
}

int
librechat_open(struct api_app *app, struct err *err)
{
	const char *path = app->config->librechat_keys_file;
	auto_buf struct buf text = BUF_INIT(KEYS_FILE_MAX);

	app->librechat_keys = NULL;
	app->calls = calls_open(err);
	if (app->calls == NULL)
		return -1;
	if (sodium_init() < 0)
		return err_set(err, ERR_CONFIG, "libsodium does not start");
	randombytes_buf(app->librechat_seal, sizeof(app->librechat_seal));
	/* Any node may serve the next round of a program. */
	if (app->nodes != NULL &&
	    node_key_derive(app->config->nodes_key_file, NODE_KEY_LIBRECHAT,
		app->librechat_seal, err) != 0)
		return -1;
	if (path[0] == '\0')
		return 0;
	app->librechat_keys = xcalloc(1, sizeof(*app->librechat_keys));
	if (file_read(path, &text, err) == 0 &&
	    libre_keys_parse(app->librechat_keys, buf_str(&text), err) == 0)
		return 0;
	err->code = ERR_CONFIG;
	return err_wrap(err, "IL_LIBRECHAT_KEYS_FILE");
}

/* ---- the sender ---- */

/* Names in a row, each with its NUL, so that none runs into the next; NULL at
 * the end.  key: a hash, or NULL. */
static void
hash_names(unsigned char hash[TOKENS_HASH_LEN], const unsigned char *key,
    const char *const *names)
{
	crypto_generichash_state state;

	(void)crypto_generichash_init(&state, key,
	    key == NULL ? 0 : TOKENS_HASH_LEN, TOKENS_HASH_LEN);
	for (; *names != NULL; names++)
		(void)crypto_generichash_update(&state,
		    (const unsigned char *)*names, strlen(*names) + 1);
	(void)crypto_generichash_final(&state, hash, TOKENS_HASH_LEN);
}

/* A user of LibreChat's: the token says which, and how much each may have. */
static bool
find_user(struct api_app *app, const char *text, struct token *token,
    struct api_error *why)
{
	struct libre_claims claims;

	if (!libre_token_check(&claims, app->librechat_keys,
		clock_wall_ms() / 1000, text, why))
		return false;
	*token = (struct token){ .cells = app->config->librechat_cells,
		.rate = app->config->librechat_rate };
	hash_names(app->tenant, NULL,
	    (const char *const[]){ "tenant", claims.tenant.data, NULL });
	hash_names(token->hash, app->tenant,
	    (const char *const[]){ "user", claims.subject.data, NULL });
	jtree_release(&claims.doc);
	return true;
}

/* A token of ours, however it was sent. */
static bool
find_token(struct api_app *app, const char *text, struct token *token,
    struct api_error *why)
{
	auto_free char *bearer = xprintf("Bearer %.200s", text);
	const struct token *found = gate_find_token(app, bearer);

	if (found == NULL)
		return api_error_set(why, 401, "not in IL_API_TOKENS_FILE");
	*token = *found;
	return true;
}

/* Find the sender by one of these headers.  False: the answer's text, and the
 * reason for the log. */
static bool
find_sender(struct api_app *app, const char *bearer, const char *key,
    struct token *token, const char **text, struct api_error *why)
{
	*text = "Authentication is required";
	if (bearer == NULL && key == NULL)
		return api_error_set(why, 401,
		    "neither X-API-Key nor Authorization");
	if (bearer == NULL && app->tokens.path == NULL) {
		*text = "Bearer token is required";
		return api_error_set(why, 401,
		    "an API key, and IL_API_TOKENS_FILE is not set");
	}
	if (bearer == NULL) {
		*text = "Invalid API key";
		return find_token(app, key, token, why);
	}
	if (strncasecmp(bearer, "Bearer ", 7) != 0)
		return api_error_set(why, 401,
		    "no bearer token in Authorization");
	*text = "Invalid bearer token";
	bearer += 7 + strspn(bearer + 7, " ");
	if (app->tokens.path != NULL &&
	    strncmp(bearer, KEY_PREFIX, strlen(KEY_PREFIX)) == 0)
		return find_token(app, bearer, token, why);
	return app->librechat_keys != NULL ?
	    find_user(app, bearer, token, why) :
	    api_error_set(why, 401, "IL_LIBRECHAT_KEYS_FILE is not set");
}

/* NULL: it was not sent. */
static const char *
credential(const struct http_request *req, const char *name)
{
	const char *value = http_param(req, name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

enum gate_who
librechat_identify(struct api_app *app, struct http_request *req, bool foreign,
    struct token *token)
{
	const char *bearer = credential(req, "HTTP_AUTHORIZATION");
	const char *key = credential(req, "HTTP_X_API_KEY");
	bool asked = app->tokens.path != NULL || app->librechat_keys != NULL;
	bool none = bearer == NULL && key == NULL;
	struct api_error why;
	const char *text;

	sodium_memzero(app->tenant, sizeof(app->tenant));
	if (!foreign && (!asked || (none && app->config->librechat_open)))
		return GATE_ANYBODY;
	if (!asked) {
		reply_librechat(req, 403, NULL,
		    "Closed to others while neither IL_API_TOKENS_FILE nor "
		    "IL_LIBRECHAT_KEYS_FILE is set. On this machine ask "
		    "localhost or 127.0.0.1; /docs says more",
		    NULL);
	} else if (bearer != NULL && key != NULL) {
		reply_librechat(req, 400, NULL,
		    "Ambiguous authentication headers", NULL);
	} else if (find_sender(app, bearer, key, token, &text, &why)) {
		return GATE_KNOWN;
	} else if (!gate_refuse_stranger(app, req)) {
		/* The reason is in the log: most set-ups go wrong here.  One of
		 * them is a setting of LibreChat's, which its operator looks
		 * for. */
		log_info("librechat: %s: %s", text, why.text);
		reply_librechat(req, 401, "WWW-Authenticate: Bearer\r\n", text,
		    strcmp(why.text, LIBRE_TOKEN_RS256) == 0 ? why.text : NULL);
	}
	return GATE_REFUSED;
}

/* ---- files ---- */

void
librechat_make_session(const struct api_app *app,
    char session[LIBRE_ID_LEN + 1])
{
	libre_make_id(session);
	node_table_mark(app->nodes, session);
}

/* NULL is the empty text. */
static const char *
resource_text(const char *text)
{
	return text == NULL ? "" : text;
}

void
librechat_use(struct api_app *app, const struct libre_resource *resource)
{
	const char *kind = resource_text(resource->kind);
	bool own = kind[0] == '\0' || strcmp(kind, "user") == 0 ||
	    sodium_is_zero(app->tenant, sizeof(app->tenant));

	if (!own)
		hash_names(app->resource, app->tenant,
		    (const char *const[]){ kind, resource_text(resource->id),
			resource_text(resource->version), NULL });
	app->store.owner = own ? app->owner : app->resource;
}

bool
librechat_is_of(const struct filestore_entry *entry, const char *session)
{
	return strlen(session) == LIBRE_ID_LEN &&
	    strncmp(entry->note, session, LIBRE_ID_LEN) == 0;
}

int
librechat_file(struct api_app *app, const struct http_request *req,
    const char *session, const char *id, struct filestore_entry *entry)
{
	char uuid[LIBRE_UUID_LEN + 1];
	struct err err;
	int fd = -1;

	if (libre_id_to_file(uuid, id))
		fd = nodes_get_file(app, req, uuid, strlen(uuid), entry, &err);
	if (fd < 0 || librechat_is_of(entry, session))
		return fd;
	free(entry->name);
	(void)close(fd);
	return -1;
}

/* ---- cancels of calls ---- */

/* The lock ends with its process. */
static void
calls_lock(const struct librechat_calls *calls, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	(void)TEMP_FAILURE_RETRY(fcntl(calls->fd, F_SETLKW, &lock));
}

bool
librechat_is_call_id(const char *id)
{
	return id != NULL && id[0] != '\0' && strlen(id) <= CALL_ID_MAX;
}

/* Free the entries whose time is over and those of dead processes.  True: there
 * is a cancel of this call, or, where it is a cancel itself, a run, which gets
 * the signal. */
static bool
calls_find(struct librechat_calls *calls, const struct librechat_call *call)
{
	bool found = false;

	for (size_t i = 0; i < CALLS_MAX; i++) {
		struct librechat_call *c = &calls->items[i];

		if (c->since_us <= call->since_us - KEEP_US ||
		    (c->writer != 0 && !shared_file_writer_is_there(c->writer)))
			c->since_us = 0;
		if (c->since_us == 0 ||
		    (c->writer == 0) != (call->writer != 0) ||
		    memcmp(c->name, call->name, sizeof(c->name)) != 0)
			continue;
		found = true;
		if (c->writer != 0)
			(void)kill(shared_file_writer_pid(c->writer), SIGUSR1);
	}
	return found;
}

static struct librechat_call *
older_of(struct librechat_call *a, struct librechat_call *b)
{
	return a != NULL && a->since_us <= b->since_us ? a : b;
}

/* The entry to write a run or a cancel to: for a repeated cancel its own, else
 * a free one, else that of the oldest cancel.  A sender with OWN_CALLS_MAX
 * cancels loses its own oldest one.  NULL: there are runs alone. */
static struct librechat_call *
calls_choose(struct librechat_calls *calls, const struct librechat_call *call)
{
	struct librechat_call *place = NULL;
	struct librechat_call *oldest = NULL;
	struct librechat_call *own = NULL;
	size_t count = 0;

	for (size_t i = 0; i < CALLS_MAX; i++) {
		struct librechat_call *c = &calls->items[i];

		if (c->since_us == 0)
			place = c;
		if (c->since_us == 0 || c->writer != 0)
			continue;
		if (call->writer == 0 &&
		    memcmp(c->name, call->name, sizeof(c->name)) == 0)
			return c;
		oldest = older_of(oldest, c);
		if (memcmp(c->owner, call->owner, sizeof(c->owner)) != 0)
			continue;
		own = older_of(own, c);
		count++;
	}
	if (call->writer == 0 && count >= OWN_CALLS_MAX)
		return own;
	return place != NULL ? place : oldest;
}

/* Enter a run or a cancel into the table.  True: there is the other one. */
static bool
calls_enter(const struct api_app *app, const char *id, int64_t writer)
{
	struct librechat_call call = { .writer = writer,
		.since_us = clock_monotonic_us() };
	struct librechat_call *place;
	bool found;

	memcpy(call.owner, app->owner, sizeof(call.owner));
	(void)crypto_generichash(call.name, sizeof(call.name),
	    (const unsigned char *)id, strlen(id), app->owner,
	    sizeof(app->owner));
	calls_lock(app->calls, F_WRLCK);
	found = calls_find(app->calls, &call);
	place = calls_choose(app->calls, &call);
	if (place != NULL)
		*place = call;
	calls_lock(app->calls, F_UNLCK);
	return found;
}

bool
librechat_call_begin(const struct api_app *app, const char *id, int fd)
{
	call_fd = fd;
	call_is_cancelled = 0;
	if (calls_enter(app, id, shared_file_writer()))
		call_is_cancelled = 1;
	return call_is_cancelled == 0;
}

bool
librechat_cancel(const struct api_app *app, const char *id)
{
	return calls_enter(app, id, 0);
}

/* A process has one run at a time.  No signal comes once its entry is free. */
bool
librechat_call_end(const struct api_app *app)
{
	int64_t own = shared_file_writer();

	calls_lock(app->calls, F_WRLCK);
	for (size_t i = 0; i < CALLS_MAX; i++)
		if (app->calls->items[i].writer == own)
			app->calls->items[i].since_us = 0;
	calls_lock(app->calls, F_UNLCK);
	call_fd = -1;
	return call_is_cancelled == 0;
}
