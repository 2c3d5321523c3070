/* SPDX-License-Identifier: MIT */
#include "librechat_cancel.h"

#include <stddef.h>
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

/* A name of the abstract namespace, which no file stays behind of.  False: it
 * is no id. */
static bool
name_socket(struct api_app *app, const char *id, struct sockaddr_un *address)
{
	unsigned char hash[NAME_BYTES];
	crypto_generichash_state state;
	size_t len = id == NULL ? 0 : strlen(id);

	if (len == 0 || len > ID_MAX)
		return false;
	(void)crypto_generichash_init(&state, librechat_seal(app),
	    sizeof(app->librechat_seal), sizeof(hash));
	(void)crypto_generichash_update(&state, app->owner, sizeof(app->owner));
	(void)crypto_generichash_update(&state, (const unsigned char *)id, len);
	(void)crypto_generichash_final(&state, hash, sizeof(hash));
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)sodium_bin2hex(address->sun_path + 1,
	    sizeof(address->sun_path) - 1, hash, sizeof(hash));
	return true;
}

#define ADDRESS_LEN \
	((socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + \
	    2 * NAME_BYTES))

int
librechat_cancel_listen(struct api_app *app, const struct http_request *req)
{
	struct sockaddr_un address;
	auto_close int fd = -1;

	if (!name_socket(app,
		http_param(req, "HTTP_X_LIBRECHAT_CODE_REQUEST_ID"), &address))
		return -1;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 ||
	    bind(fd, (const struct sockaddr *)&address, ADDRESS_LEN) != 0) {
		log_info("librechat: a call that cannot be cancelled: %m");
		return -1;
	}
	return steal_fd(&fd);
}

/* False: there is no such run, or not any more. */
static bool
cancel(struct api_app *app, const char *id)
{
	struct sockaddr_un address;
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && name_socket(app, id, &address) &&
	    sendto(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL,
		(const struct sockaddr *)&address, ADDRESS_LEN) == 1;
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
