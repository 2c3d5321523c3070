/* SPDX-License-Identifier: MIT */
#include "session_cell.h"

#include <poll.h>

#include "app.h"
#include "session_holder.h"
#include "../server/http.h"

#define START_MS 30000 /* a session's cell is always a new one */
/* The lease outlives the session: its holder ends that. */
#define MORE_MS 60000
#define LEASE_MS_MAX (INT64_C(24) * 3600 * 1000)
#define ROOM_TIMES 3 /* others want it as well */

enum refusal
session_cell_lease(struct api_app *app, struct http_request *req,
    const char *interpreter, int64_t ttl_ms, struct lease *lease,
    int64_t *next_ms, struct err *err)
{
	const struct pollfd gone = { .fd = http_fd(req), .events = POLLRDHUP };
	int64_t lease_ms = ttl_ms + MORE_MS;
	const struct lease_request request = { .class = "session",
		.sandbox = "",
		.interpreter = interpreter,
		.lease_ms = lease_ms < LEASE_MS_MAX ? lease_ms : LEASE_MS_MAX,
		.unless = &gone };
	enum refusal refusal;
	int tries = 0;

	*next_ms = 0;
	do
		refusal = lease_open(lease, app->lease_socket, &request,
		    START_MS, err);
	while (refusal == REFUSAL_FULL && tries++ < ROOM_TIMES &&
	    session_holder_make_room(app, true, next_ms));
	return refusal;
}
