/* SPDX-License-Identifier: MIT */
/*
 * POST /librechat/exec/programmatic: a program that calls the client's tools, a
 * run for each round.  Nothing is kept here between the rounds.  The cancel of
 * such a run by another request is here, too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "api/app.h"
#include "api/librechat_run.h"
#include "api/librechat_who.h"
#include "api/reply.h"
#include "api/routes.h"
#include "pytext/pyjson.h"
#include "server/http.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"

#define ID_MAX 128 /* a UUID has 36 */
#define OWNER_BYTES 8
#define NAME_BYTES 32
/* A call waits for less in the queues of nginx and il-api. */
#define KEEP_MS 300000
#define FILES_MAX 1024
#define OWN_FILES_MAX 256 /* no owner has the room of all others */

/*
 * POST /librechat/exec/programmatic/cancel ends the run of a call that has sent
 * an id of its own, X-LibreChat-Code-Request-ID.  A call has a file in a folder
 * that il-api alone may enter; its name follows from the id and the owner.  The
 * run locks and watches that file, and a cancel writes a byte into it.  The
 * byte stays for minutes, so a call that arrives after its cancel does not
 * begin.
 */
struct librechat_call {
	int cancelled_fd; /* readable once the run is to end; -1: never */
	int file_fd;	  /* -1: none */
	char *path;
};

static bool
is_id(const char *id)
{
	return id != NULL && id[0] != '\0' && strlen(id) <= ID_MAX;
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
	char name[2 * OWNER_BYTES + 1];

	(void)crypto_generichash(hash, sizeof(hash), app->owner,
	    sizeof(app->owner), NULL, 0);
	return xprintf("%s-",
	    sodium_bin2hex(name, sizeof(name), hash, OWNER_BYTES));
}

static char *
path_of_call(const struct api_app *app, const char *id)
{
	auto_free char *folder = folder_of_calls(app);
	auto_free char *owner = name_of_owner(app);
	unsigned char hash[NAME_BYTES];
	char name[2 * NAME_BYTES + 1];

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
is_cancelled(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size > 0;
}

/* ---- the call ---- */

/* False: the call was cancelled before it began.  A call without an id, or
 * whose file cannot be made, cannot be cancelled. */
static bool
librechat_call_open(struct librechat_call *call, const struct api_app *app,
    const struct http_request *req)
{
	const char *id = http_param(req, "HTTP_X_LIBRECHAT_CODE_REQUEST_ID");

	if (!is_id(id))
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
	return !is_cancelled(call->file_fd);
}

static void
librechat_call_close(struct librechat_call *call)
{
	/* The lock fails while another run of this id has the file. */
	if (call->file_fd >= 0 &&
	    lock_file(call->file_fd, F_OFD_SETLK, F_WRLCK) &&
	    !is_cancelled(call->file_fd))
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
	remove_most_old(app, "", FILES_MAX);
}

/* ---- the cancel ---- */

/* False: the file cannot be written, which was logged. */
static bool
write_cancel(const struct api_app *app, const char *id, bool *running)
{
	auto_free char *owner = name_of_owner(app);
	auto_free char *path = path_of_call(app, id);

	remove_most_old(app, owner, OWN_FILES_MAX);
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

void
api_librechat_cancel(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	struct pyjson_error fault;
	struct pyjson doc;
	const char *id;
	bool running = false;

	if (!api_read_body(req, &body))
		return;
	if (!pyjson_parse(&doc, buf_str(&body), body.len, PYJSON_BYTES,
		&fault)) {
		reply_librechat(req, 400, NULL, "The body is not valid JSON",
		    NULL);
		return;
	}
	id = doc.root.type != PYVALUE_OBJECT ?
	    NULL :
	    pyvalue_text(pyvalue_get(&doc.root, "request_id"));
	if (!is_id(id))
		reply_librechat(req, 400, NULL,
		    "Missing required field: request_id", NULL);
	else if (!write_cancel(app, id, &running))
		reply_librechat(req, 500, NULL, "The cancel could not be kept",
		    NULL);
	else
		reply_text(req, 200, NULL,
		    running ? "{\"cancelled\":true,\"running\":true}" :
			      "{\"cancelled\":true,\"running\":false}");
	pyjson_release(&doc);
}

/* ---- a program ---- */

_Static_assert(LIBRE_OWNER_LEN == TOKENS_HASH_LEN, "an owner");

static void
answer_failed(struct libre_run *x, const char *error)
{
	auto_buf struct buf body = BUF_INIT(LIBRE_ANSWER_MAX);

	librechat_run_forget(x);
	libre_add_failed(&body, &x->outcome, error);
	reply_json(x->run.req, 200, NULL, &body);
}

/* It is over. */
static void
answer_end(struct libre_run *x)
{
	auto_buf struct buf body = BUF_INIT(LIBRE_ANSWER_MAX);
	auto_buf struct buf error = BUF_INIT(LIBRE_ERROR_MAX);

	if (libre_has_failed(&x->outcome, &error)) {
		answer_failed(x, buf_str(&error));
		return;
	}
	libre_add_completed(&body, &x->outcome);
	reply_json(x->run.req, 200, NULL, &body);
}

/* It has called tools.  What it has left it will leave once more. */
static void
answer_calls(struct libre_run *x, const struct libre_asked *asked)
{
	auto_buf struct buf calls = BUF_INIT(2 * LIBRE_STATE_MAX);
	auto_buf struct buf error = BUF_INIT(LIBRE_ERROR_MAX);
	auto_buf struct buf token = BUF_INIT(LIBRE_TOKEN_TEXT_MAX);
	auto_buf struct buf body = BUF_INIT(LIBRE_ANSWER_MAX);

	if (x->program->round > LIBRE_ROUNDS_MAX) {
		x->outcome.note = "The program has called tools in 20 rounds, "
				  "and may not do so in another one";
		answer_failed(x, LIBRE_FAILED);
		return;
	}
	/* Cut off, it may look whole. */
	if (x->calls.overflow)
		buf_reset(&x->calls);
	if (!libre_calls_read(x->program, buf_str(&x->calls), x->calls.len,
		&calls, &error)) {
		if (strcmp(buf_str(&error), LIBRE_FAILED) == 0)
			x->outcome.note = "What it called cannot be read";
		answer_failed(x, buf_str(&error));
		return;
	}
	librechat_run_forget(x);
	if (!libre_program_seal(x->program, asked, &calls, &token)) {
		reply_librechat(x->run.req, 413, NULL, LIBRE_STATE_TOO_LARGE,
		    NULL);
		return;
	}
	libre_add_calls(&body, &x->outcome, buf_str(&calls), buf_str(&token));
	reply_json(x->run.req, 200, NULL, &body);
}

static void
answer_round(struct libre_run *x, void *arg)
{
	struct libre_asked *asked = arg;

	if (!x->has_calls) {
		answer_end(x);
		return;
	}
	asked->now_ms = clock_wall_ms();
	answer_calls(x, asked);
}

void
api_librechat_program(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	auto_buf struct buf error = BUF_INIT(LIBRE_ERROR_MAX);
	char session[LIBRE_ID_LEN + 1];
	struct libre_program program;
	struct libre_asked asked = {
		.key = librechat_seal(app),
		.owner = app->owner,
		.now_ms = clock_wall_ms(),
		.session = session,
	};
	struct libre_run x = { .run = { .app = app, .req = req },
		.exec = &program.exec,
		.program = &program };
	struct librechat_call call = { .cancelled_fd = -1, .file_fd = -1 };
	int status = 400;

	if (!api_read_body(req, &body))
		return;
	librechat_make_session(app, session);
	if (!libre_program_parse(&program, buf_str(&body), body.len, &asked,
		&status, &error)) {
		reply_librechat(req, status, NULL, buf_str(&error), NULL);
		return;
	}
	buf_release(&body);
	x.own.cell.connection = -1; /* each round begins as the first one did */
	/* What it leaves is of this node, whichever had its first round. */
	memcpy(x.session,
	    strncmp(program.session, app->tag, strlen(app->tag)) == 0 ?
		program.session :
		session,
	    sizeof(x.session));
	x.run.end = RUN_STOPPED;
	if (librechat_call_open(&call, app, req)) {
		x.run.stop_fd = call.cancelled_fd;
		librechat_run(&x, answer_round, &asked);
	}
	librechat_call_close(&call);
	/* A client that cancels closes its connection; a proxy may not. */
	if (x.run.end == RUN_STOPPED && !http_client_gone(req))
		reply_librechat(req, 409, NULL, "The execution was cancelled",
		    NULL);
	libre_program_release(&program);
}
