/* SPDX-License-Identifier: MIT */
/*
 * Senders of LibreChat's requests, in three generations: with an API key, with
 * a token that LibreChat has signed, or without credentials; and owners of
 * files.
 *
 */
#include "api/librechat_who.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "api/app.h"
#include "api/reply.h"
#include "contract/librechat/libre_token.h"
#include "server/http.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "protocol/node_table.h"

#define KEYS_FILE_MAX 65536
#define KEY_PREFIX "il_"
#define CALL_ID_MAX 128 /* a UUID has 36 */
#define CALL_OWNER_BYTES 8
#define CALL_NAME_BYTES 32
/* A call waits for less in the queues of nginx and il-api. */
#define KEEP_MS 300000
#define CALLS_MAX 1024
#define OWN_CALLS_MAX 256	  /* no owner has the room of all others */
#define SEAL_FILE "librechat.key" /* no id of a file has this form */

/* False: it cannot be had from the store's folder. */
static bool
read_seal(struct api_app *app)
{
	unsigned char key[sizeof(app->librechat_seal)];
	auto_close int fd = openat(app->store.dir, SEAL_FILE,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || read(fd, key, sizeof(key)) != (ssize_t)sizeof(key))
		return false;
	memcpy(app->librechat_seal, key, sizeof(key));
	return true;
}

/* Keep the one that we have, unless somebody was faster.  It appears whole or
 * not at all, and whoever dies on the way leaves nothing. */
static void
write_seal(struct api_app *app)
{
	const int dir = app->store.dir;
	char name[64];
	auto_close int fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC,
	    0600);

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (fd < 0 ||
	    write(fd, app->librechat_seal, sizeof(app->librechat_seal)) !=
		(ssize_t)sizeof(app->librechat_seal) ||
	    fsync(fd) != 0 ||
	    (linkat(AT_FDCWD, name, dir, SEAL_FILE, AT_SYMLINK_FOLLOW) != 0 &&
		errno != EEXIST))
		log_warn("librechat: %s: %s", SEAL_FILE, strerror(errno));
}

const unsigned char *
librechat_seal(struct api_app *app)
{
	if (app->nodes == NULL && !read_seal(app)) {
		write_seal(app);
		if (!read_seal(app))
			log_warn("librechat: the key of the programs that call "
				 "tools is not kept: a restart ends them");
	}
	return app->librechat_seal;
}

int
librechat_open(struct api_app *app, struct err *err)
{
	const char *path = app->config->librechat_keys_file;
	auto_buf struct buf text = BUF_INIT(KEYS_FILE_MAX);

	app->librechat_keys = NULL;
	if (sodium_init() < 0)
		return err_set(err, ERR_CONFIG, "libsodium does not start");
	randombytes_buf(app->librechat_seal, sizeof(app->librechat_seal));
	/* Of several nodes any may take the next round of a program. */
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

/* 401, with the reason in the log: most set-ups go wrong here. */
static enum gate_who
refuse_credentials(struct api_app *app, struct http_request *req,
    const char *text, const char *why)
{
	if (gate_refuse_stranger(app, req))
		return GATE_REFUSED;
	log_info("librechat: %s: %s", text, why);
	/* That is a setting of LibreChat's, which its operator looks for. */
	reply_librechat(req, 401, "WWW-Authenticate: Bearer\r\n", text,
	    strcmp(why, LIBRE_TOKEN_RS256) == 0 ? why : NULL);
	return GATE_REFUSED;
}

/* ---- the sender ---- */

/* Names in a row, each with its NUL, so that none runs into the next. */
static void
hash_names(unsigned char hash[TOKENS_HASH_LEN], const char *const *names,
    const unsigned char *key, size_t key_len)
{
	crypto_generichash_state state;

	(void)crypto_generichash_init(&state, key, key_len, TOKENS_HASH_LEN);
	for (; *names != NULL; names++)
		(void)crypto_generichash_update(&state,
		    (const unsigned char *)*names, strlen(*names) + 1);
	(void)crypto_generichash_final(&state, hash, TOKENS_HASH_LEN);
}

/* A user of LibreChat's is who the token says, with what each may have. */
static enum gate_who
check_user(struct api_app *app, struct http_request *req, const char *text,
    struct token *token)
{
	const struct libre_expected expected = {
		.keys = app->librechat_keys,
		.issuer = "librechat",
		.audience = "codeapi",
		.now_s = clock_wall_ms() / 1000,
	};
	struct libre_claims claims;
	const char *why = libre_token_check(&claims, &expected, text,
	    strlen(text));

	if (why != NULL)
		return refuse_credentials(app, req, "Invalid bearer token",
		    why);
	*token = (struct token){ .cells = app->config->librechat_cells,
		.rate = app->config->librechat_rate };
	hash_names(app->tenant,
	    (const char *const[]){ "tenant", claims.tenant, NULL }, NULL, 0);
	hash_names(token->hash,
	    (const char *const[]){ "user", claims.subject, NULL }, app->tenant,
	    sizeof(app->tenant));
	return GATE_KNOWN;
}

/* A token of ours, however it was sent. */
static enum gate_who
check_token(struct api_app *app, struct http_request *req, const char *text,
    const char *refusal, struct token *token)
{
	auto_free char *bearer = xprintf("Bearer %.200s", text);
	const struct token *found = gate_find_token(app, bearer);

	if (found == NULL)
		return refuse_credentials(app, req, refusal,
		    "not in IL_API_TOKENS_FILE");
	*token = *found;
	return GATE_KNOWN;
}

static enum gate_who
check_bearer(struct api_app *app, struct http_request *req, const char *header,
    struct token *token)
{
	if (strncasecmp(header, "Bearer ", 7) != 0)
		return refuse_credentials(app, req,
		    "Authentication is required",
		    "no bearer token in Authorization");
	header += 7;
	header += strspn(header, " ");
	if (app->tokens.path != NULL &&
	    strncmp(header, KEY_PREFIX, strlen(KEY_PREFIX)) == 0)
		return check_token(app, req, header, "Invalid bearer token",
		    token);
	if (app->librechat_keys != NULL)
		return check_user(app, req, header, token);
	return refuse_credentials(app, req, "Invalid bearer token",
	    "IL_LIBRECHAT_KEYS_FILE is not set");
}

/* NULL: it was not sent. */
static const char *
credential(const struct http_request *req, const char *name)
{
	const char *value = http_param(req, name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

static enum gate_who
librechat_identify(struct api_app *app, struct http_request *req, bool foreign,
    struct token *token)
{
	const char *bearer = credential(req, "HTTP_AUTHORIZATION");
	const char *key = credential(req, "HTTP_X_API_KEY");
	bool asked = app->tokens.path != NULL || app->librechat_keys != NULL;

	sodium_memzero(app->tenant, sizeof(app->tenant));
	if (!asked && foreign) {
		reply_librechat(req, 403, NULL,
		    "Closed to others while neither IL_API_TOKENS_FILE nor "
		    "IL_LIBRECHAT_KEYS_FILE is set. On this machine ask "
		    "localhost or 127.0.0.1; /docs says more",
		    NULL);
		return GATE_REFUSED;
	}
	if (!asked)
		return GATE_ANYBODY;
	if (bearer != NULL && key != NULL) {
		reply_librechat(req, 400, NULL,
		    "Ambiguous authentication headers", NULL);
		return GATE_REFUSED;
	}
	if (bearer != NULL)
		return check_bearer(app, req, bearer, token);
	if (key != NULL && app->tokens.path == NULL)
		return refuse_credentials(app, req, "Bearer token is required",
		    "an API key, and IL_API_TOKENS_FILE is not set");
	if (key != NULL)
		return check_token(app, req, key, "Invalid API key", token);
	if (app->config->librechat_open && !foreign)
		return GATE_ANYBODY;
	return refuse_credentials(app, req, "Authentication is required",
	    "neither X-API-Key nor Authorization");
}

const struct gate_scheme librechat_scheme = { librechat_identify };

/* ---- files ---- */

void
librechat_make_session(const struct api_app *app,
    char session[LIBRE_ID_LEN + 1])
{
	unsigned char bytes[LIBRE_ID_BYTES];

	randombytes_buf(bytes, sizeof(bytes));
	libre_id_of_bytes(session, bytes);
	node_table_mark(app->nodes, session);
}

void
librechat_use(struct api_app *app, const struct libre_resource *resource)
{
	bool own = resource->kind == LIBRE_USER ||
	    sodium_is_zero(app->tenant, sizeof(app->tenant));

	if (!own)
		hash_names(app->resource,
		    (const char *const[]){
			resource->kind == LIBRE_AGENT ? "agent" : "skill",
			resource->id, resource->version, NULL },
		    app->tenant, sizeof(app->tenant));
	app->store.owner = own ? app->owner : app->resource;
}

void
librechat_use_own(struct api_app *app)
{
	app->store.owner = app->owner;
}

int
librechat_file(struct api_app *app, const struct http_request *req,
    const struct libre_resource *resource, const char *session, const char *id,
    struct filestore_entry *entry, struct err *err)
{
	char uuid[LIBRE_UUID_LEN + 1];
	int fd;

	if (!libre_id_to_file(uuid, id, strlen(id)))
		return err_set(err, ERR_NOT_FOUND, "not an id of a file");
	librechat_use(app, resource);
	fd = nodes_get_file(app, req, uuid, strlen(uuid), entry, err);
	librechat_use_own(app);
	if (fd < 0)
		return -1;
	if (strlen(session) == LIBRE_ID_LEN &&
	    strncmp(entry->note, session, LIBRE_ID_LEN) == 0)
		return fd;
	free(entry->name);
	(void)close(fd);
	return err_set(err, ERR_NOT_FOUND, "of another session");
}

/* ---- cancels of calls ---- */

bool
librechat_is_call_id(const char *id)
{
	return id != NULL && id[0] != '\0' && strlen(id) <= CALL_ID_MAX;
}

static char *
folder_of_calls(const struct api_app *app)
{
	return xprintf("%s/calls", app->sessions);
}

/* The names of all files of the owner begin so; heap. */
static char *
name_of_owner(const struct api_app *app)
{
	unsigned char hash[crypto_generichash_BYTES];
	char name[2 * CALL_OWNER_BYTES + 1];

	(void)crypto_generichash(hash, sizeof(hash), app->owner,
	    sizeof(app->owner), NULL, 0);
	return xprintf("%s-",
	    sodium_bin2hex(name, sizeof(name), hash, CALL_OWNER_BYTES));
}

static char *
path_of_call(const struct api_app *app, const char *id)
{
	auto_free char *folder = folder_of_calls(app);
	auto_free char *owner = name_of_owner(app);
	unsigned char hash[CALL_NAME_BYTES];
	char name[2 * CALL_NAME_BYTES + 1];

	(void)crypto_generichash(hash, sizeof(hash), (const unsigned char *)id,
	    strlen(id), app->owner, sizeof(app->owner));
	return xprintf("%s/%s%s", folder, owner,
	    sodium_bin2hex(name, sizeof(name), hash, sizeof(hash)));
}

/* -1: it cannot be had, which was logged. */
static int
open_file(const struct api_app *app, const char *path)
{
	auto_free char *folder = folder_of_calls(app);
	struct err err;
	int fd;

	if (fd_make_dirs(folder, 0700, &err) != 0) {
		log_warn("librechat: a call cannot be cancelled: %s", err.text);
		return -1;
	}
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		log_warn("librechat: a call cannot be cancelled: %m");
	return fd;
}

/* A run has its file locked for reading. */
static bool
lock_file(int fd, int command, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	return TEMP_FAILURE_RETRY(fcntl(fd, command, &lock)) == 0;
}

static bool
is_running(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static bool
is_removed(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

static bool
librechat_is_cancelled(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size > 0;
}

/* ---- the call ---- */

/* False: the call was cancelled before it began.  A call without an id, or
 * whose file cannot be made, cannot be cancelled. */
bool
librechat_call_open(struct librechat_call *call, const struct api_app *app,
    const struct http_request *req)
{
	const char *id = http_param(req, "HTTP_X_LIBRECHAT_CODE_REQUEST_ID");

	if (!librechat_is_call_id(id))
		return true;
	call->path = path_of_call(app, id);
	/* A sweep, or another run of this id, may remove it meanwhile. */
	do {
		cleanup_close(&call->file_fd);
		call->file_fd = open_file(app, call->path);
		if (call->file_fd < 0 ||
		    !lock_file(call->file_fd, F_OFD_SETLKW, F_RDLCK))
			return true;
	} while (is_removed(call->file_fd));
	/* The run watches before it looks: it misses no cancel in between. */
	call->cancelled_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (call->cancelled_fd < 0 ||
	    inotify_add_watch(call->cancelled_fd, call->path, IN_MODIFY) < 0)
		log_warn("librechat: a call cannot be cancelled: %m");
	return !librechat_is_cancelled(call->file_fd);
}

void
librechat_call_close(struct librechat_call *call)
{
	/* The lock fails while another run of this id has the file. */
	if (call->file_fd >= 0 &&
	    lock_file(call->file_fd, F_OFD_SETLK, F_WRLCK) &&
	    !librechat_is_cancelled(call->file_fd))
		(void)unlink(call->path);
	cleanup_close(&call->file_fd);
	cleanup_close(&call->cancelled_fd);
	free(call->path);
	call->path = NULL;
}

/* ---- files of minutes ago ---- */

/* Remove a file that no run has and that was written before before_ms.  False:
 * it stays. */
static bool
remove_old(int dir, const char *name, int64_t before_ms)
{
	auto_close int fd = openat(dir, name,
	    O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 &&
	    (int64_t)st.st_mtim.tv_sec * 1000 < before_ms &&
	    lock_file(fd, F_OFD_SETLK, F_WRLCK) && unlinkat(dir, name, 0) == 0;
}

/* Do that with all files whose names begin so.  Returns how many stay. */
static size_t
remove_all_old(const char *folder, const char *begin, int64_t before_ms)
{
	auto_dir DIR *dir = opendir(folder);
	const struct dirent *entry;
	size_t count = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.' &&
		    strncmp(entry->d_name, begin, strlen(begin)) == 0 &&
		    !remove_old(dirfd(dir), entry->d_name, before_ms))
			count++;
	return count;
}

/* If more than most of these are too young, the older ones of them go. */
static void
remove_most_old(const struct api_app *app, const char *begin, size_t most)
{
	auto_free char *folder = folder_of_calls(app);
	int64_t keep_ms = KEEP_MS;

	while (remove_all_old(folder, begin, clock_wall_ms() - keep_ms) >
		most &&
	    keep_ms > 0)
		keep_ms /= 2;
}

void
librechat_cancel_sweep(const struct api_app *app)
{
	remove_most_old(app, "", CALLS_MAX);
}

/* ---- the cancel ---- */

bool
librechat_cancel(const struct api_app *app, const char *id, bool *running)
{
	auto_free char *owner = name_of_owner(app);
	auto_free char *path = path_of_call(app, id);

	remove_most_old(app, owner, OWN_CALLS_MAX);
	librechat_cancel_sweep(app);
	for (;;) {
		auto_close int fd = open_file(app, path);

		if (fd < 0)
			return false;
		/* Once the byte is there a run may end before we look. */
		*running = is_running(fd);
		if (pwrite(fd, "x", 1, 0) != 1) {
			log_warn("librechat: write %s: %m", path);
			return false;
		}
		/* A run that has just ended removed it: write it once more, for
		 * a later call of this id. */
		if (!is_removed(fd))
			return true;
	}
}
