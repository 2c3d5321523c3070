/* SPDX-License-Identifier: MIT */
#include "librechat_cancel.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <sodium.h>

#include "app.h"
#include "librechat_who.h"
#include "reply.h"
#include "routes.h"
#include "run.h"
#include "../pytext/pyjson.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/log.h"

#define ID_MAX 128 /* a UUID has 36 */
#define NAME_BYTES 32
#define WORDS 4

/* What follows from an id: a name of the abstract namespace, of which no file
 * stays behind, and what is sent there.  /proc/net/unix lists names for all. */
struct way {
	struct sockaddr_un address;
	uint32_t word[WORDS];
};

#define ADDRESS_LEN \
	((socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + \
	    2 * NAME_BYTES))

/* False: it is no id. */
static bool
find_way(struct api_app *app, const char *id, struct way *way)
{
	unsigned char hash[NAME_BYTES + sizeof(way->word)];
	crypto_generichash_state state;
	size_t len = id == NULL ? 0 : strlen(id);

	if (len == 0 || len > ID_MAX)
		return false;
	(void)crypto_generichash_init(&state, librechat_seal(app),
	    sizeof(app->librechat_seal), sizeof(hash));
	(void)crypto_generichash_update(&state, app->owner, sizeof(app->owner));
	(void)crypto_generichash_update(&state, (const unsigned char *)id, len);
	(void)crypto_generichash_final(&state, hash, sizeof(hash));
	*way = (struct way){ .address.sun_family = AF_UNIX };
	(void)sodium_bin2hex(way->address.sun_path + 1,
	    sizeof(way->address.sun_path) - 1, hash, NAME_BYTES);
	memcpy(way->word, hash + NAME_BYTES, sizeof(way->word));
	return true;
}

#define LOAD(i) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4 * (i))
/* One that differs skips `rest` lines, to the one that drops the datagram. */
#define SAME(w, rest) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(w), 0, rest)

/* The kernel drops what others send to the socket.  A datagram that is too
 * short fails at LOAD, which drops it too. */
static int
drop_others(int fd, const struct way *way)
{
	struct sock_filter lines[] = {
		LOAD(0),
		SAME(way->word[0], 7),
		LOAD(1),
		SAME(way->word[1], 5),
		LOAD(2),
		SAME(way->word[2], 3),
		LOAD(3),
		SAME(way->word[3], 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog filter = {
		.len = sizeof(lines) / sizeof(lines[0]), .filter = lines
	};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
	    sizeof(filter));
}

int
librechat_cancel_listen(struct api_app *app, const struct http_request *req)
{
	struct way way;
	auto_close int fd = -1;

	if (!find_way(app, http_param(req, "HTTP_X_LIBRECHAT_CODE_REQUEST_ID"),
		&way))
		return -1;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || drop_others(fd, &way) != 0 ||
	    bind(fd, (const struct sockaddr *)&way.address, ADDRESS_LEN) != 0) {
		log_info("librechat: a call that cannot be cancelled: %m");
		return -1;
	}
	return steal_fd(&fd);
}

/* False: there is no such run, or not any more. */
static bool
cancel(struct api_app *app, const char *id)
{
	struct way way;
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && find_way(app, id, &way) &&
	    sendto(fd, way.word, sizeof(way.word), MSG_DONTWAIT | MSG_NOSIGNAL,
		(const struct sockaddr *)&way.address,
		ADDRESS_LEN) == (ssize_t)sizeof(way.word);
}

void
api_librechat_cancel(struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	struct pyjson_error fault;
	struct pyjson doc;
	const char *id;

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
	if (id == NULL || id[0] == '\0' || strlen(id) > ID_MAX)
		reply_librechat(req, 400, NULL,
		    "Missing required field: request_id", NULL);
	else
		reply_text(req, 200, NULL,
		    cancel(app, id) ? "{\"cancelled\":true}" :
				      "{\"cancelled\":false}");
	pyjson_release(&doc);
}
