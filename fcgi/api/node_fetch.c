/* SPDX-License-Identifier: MIT */
#include "node_fetch.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "app.h"
#include "node_answer.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/fd.h"

/* nginx gives up on a node after a second that does not take a connection. */
#define HEAD_MS 10000
#define WHOLE_MS 60000
/* Of one request, together: the work folder of a run takes less. */
#define TOGETHER_MAX API_BODY_MAX
#define PIECE 65536

/* One answer as it comes. */
struct fetch {
	const struct http_request *req; /* for whom */
	int fd;
	int64_t until_ms; /* monotonic */
	struct node_answer answer;
	struct buf piece; /* bytes that have come: of the head, then of the file
			   */
};

/* Put what comes next behind what is there.  0: that was the end. */
static ssize_t
receive(struct fetch *f, struct err *err)
{
	const struct pollfd gone = { .fd = http_fd(f->req),
		.events = POLLRDHUP };
	char *room = buf_reserve(&f->piece, f->piece.max - f->piece.len);
	ssize_t n;

	if (!fd_wait_unless(f->fd, &gone, clock_poll_timeout(f->until_ms)))
		return err_set(err, ERR_TIMEOUT, "its client is gone");
	n = recv(f->fd, room, f->piece.max - f->piece.len, MSG_DONTWAIT);
	if (n < 0)
		return err_set(err, ERR_UNAVAILABLE, "it does not go on");
	buf_commit(&f->piece, (size_t)n);
	return n;
}

static int
ask(struct fetch *f, const struct api_app *app, const struct node_entry *node,
    const char *id, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(1024);
	char owner[2 * TOKENS_HASH_LEN + 1];

	(void)sodium_bin2hex(owner, sizeof(owner), app->store.owner,
	    TOKENS_HASH_LEN);
	/* An answer in HTTP/1.0 comes in one piece. */
	buf_addf(&text,
	    "GET " NODE_FILES "%s HTTP/1.0\r\nHost: inline\r\n"
	    "Inline-Node: %s\r\nInline-Owner: %s\r\n\r\n",
	    id, node->address, owner);
	f->fd = fd_connect_unix(app->nodes_socket, SOCK_STREAM, err);
	if (f->fd < 0 ||
	    send(f->fd, buf_str(&text), text.len,
		MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)text.len)
		return err_set(err, ERR_UNAVAILABLE,
		    "our nginx does not listen at %s: is its configuration "
		    "that of `ilctl nginx`?",
		    app->nodes_socket);
	return 0;
}

/* The head of the answer; what is in f->piece afterwards is of the file. */
static int
take_head(struct fetch *f, struct err *err)
{
	ssize_t len = 0;

	while (len == 0) {
		ssize_t n = receive(f, err);

		if (n < 0)
			return -1;
		len = node_answer_read(&f->answer, buf_str(&f->piece),
		    f->piece.len);
		if (len < 0 || (n == 0 && len == 0))
			return err_set(err, ERR_UNAVAILABLE,
			    "an answer that makes no sense");
	}
	buf_drop(&f->piece, (size_t)len);
	/* 502 and 504 are our nginx's: it cannot reach the node. */
	if (f->answer.status == 404 || f->answer.status == 502 ||
	    f->answer.status == 504)
		return err_set(err, ERR_NOT_FOUND,
		    f->answer.status == 404 ? "it is not there" :
					      "the node cannot be reached");
	if (f->answer.status != 200 || f->answer.length < 0)
		return err_set(err, ERR_UNAVAILABLE, "the answer is %d",
		    f->answer.status);
	return 0;
}

/* The bytes of the file, so many as were announced. */
static int
take_bytes(struct fetch *f, struct filestore_new *file, struct err *err)
{
	int64_t left = f->answer.length;

	for (;;) {
		size_t len = f->piece.len;

		if ((int64_t)len > left)
			return err_set(err, ERR_UNAVAILABLE,
			    "more bytes than were announced");
		left -= (int64_t)len;
		if (filestore_write(file, buf_str(&f->piece), len, err) != 0)
			return -1;
		buf_reset(&f->piece);
		if (left == 0)
			return 0;
		switch (receive(f, err)) {
		case -1:
			return -1;
		case 0:
			return err_set(err, ERR_UNAVAILABLE,
			    "fewer bytes than were announced");
		default:
			break;
		}
	}
}

/* Into a file of our store that has no name. */
static int
store(struct fetch *f, struct api_app *app, struct err *err)
{
	const unsigned char *owner = app->store.owner;
	struct filestore_new file;
	int fd = -1;

	if (f->answer.length > (int64_t)TOGETHER_MAX - app->fetched)
		return err_set(err, ERR_LIMIT,
		    "a request's files of other nodes are too large together");
	app->fetched += f->answer.length;
	f->until_ms += WHOLE_MS - HEAD_MS;
	/* It is none of its owner's here. */
	app->store.owner = NULL;
	if (filestore_begin(&app->store, &file, err) == 0) {
		if (take_bytes(f, &file, err) == 0)
			fd = filestore_detach(&file, err);
		filestore_abort(&file);
	}
	app->store.owner = owner;
	/* A store of ours without room is no fault of the request's. */
	if (fd < 0 && err->code != ERR_TIMEOUT)
		err->code = ERR_UNAVAILABLE;
	return fd;
}

int
node_fetch(struct api_app *app, const struct http_request *req,
    const struct node_entry *node, const char *id,
    struct filestore_entry *entry, struct err *err)
{
	struct fetch f = { .req = req,
		.fd = -1,
		.until_ms = clock_monotonic_ms() + HEAD_MS,
		.piece = BUF_INIT(PIECE) };
	auto_close int fd = -1;

	if (ask(&f, app, node, id, err) == 0 && take_head(&f, err) == 0)
		fd = store(&f, app, err);
	/* What it does not answer now, it does not answer for the next file. */
	if (fd < 0 && f.answer.status != 404 &&
	    (err->code == ERR_NOT_FOUND || err->code == ERR_UNAVAILABLE))
		memcpy(app->away, node->tag, sizeof(app->away));
	if (fd >= 0 && entry != NULL) {
		*entry = (struct filestore_entry){ .size = f.answer.length };
		memcpy(entry->id, id, FILESTORE_ID_LEN);
		memcpy(entry->note, f.answer.note, sizeof(entry->note));
		entry->name = xstrdup(f.answer.name[0] != '\0' ? f.answer.name :
								 "unnamed");
	}
	buf_release(&f.piece);
	cleanup_close(&f.fd);
	return steal_fd(&fd);
}
