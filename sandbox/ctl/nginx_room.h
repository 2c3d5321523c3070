/* SPDX-License-Identifier: MIT */
#ifndef NGINX_ROOM_H
#define NGINX_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* What the limits in nginx/ assume of each of nginx's processes. */
#define NGINX_CONNECTIONS_MIN 4096

/* Of nginx's configuration, what says how many connections it takes. */
struct nginx_room {
	int64_t connections; /* worker_connections */
	int64_t files;	     /* worker_rlimit_nofile; 0: not said */
	bool ours;	     /* it has what we install in lib_dir */
};

/* dump: as `nginx -T` prints it, which has found no fault. */
void nginx_room_read(struct nginx_room *room, const char *dump,
    const char *lib_dir);
bool nginx_room_suffices(const struct nginx_room *room);

#endif
