#ifndef SESSION_HOLDER_H
#define SESSION_HOLDER_H

#include <stdint.h>
#include <sys/types.h>

#include "../../sandbox/protocol/tokens.h"

struct err;
struct lease;
struct metrics;
struct pollfd;

/*
 * A session outlives the requests that use it: a process of its own keeps its
 * lease, and lends the cell to one request after another.  It listens on
 * STATE/sessions/<32 hex digits>, and ends at its time, when it is told to,
 * when the cell is gone, when a request breaks off, and with the master, to
 * which it belongs.  To whoever comes with another token than made it, it is
 * not there.
 */
#define SESSION_ID_LEN 32

struct session_holder_spec {
	const char *folder; /* STATE/sessions */
	const char *id;
	int64_t until_ms; /* monotonic */
	pid_t master;
	struct metrics *metrics;
	const unsigned char *owner; /* TOKENS_HASH_LEN bytes; so below */
	int slot; /* a descriptor to hold as long as it lasts; negative: none */
};

/* Hand the lease over to a new holder.  After 0 it is the holder's alone. */
int session_holder_start(const struct session_holder_spec *spec,
    struct lease *lease, struct err *err);

/* At the start: remove the sockets of holders that died with their master. */
void session_holder_sweep(const char *folder);

/* Borrow the cell: a connection to the holder, and the cell's descriptor; wait
 * at most wait_ms for those who are before us, or until *unless (NULL: nothing)
 * happens.  -1 with ERR_NOT_FOUND: there is no such session; with ERR_TIMEOUT:
 * its cell was not to be had, or too many wait for it. */
int session_holder_borrow(const char *folder, const char *id,
    const unsigned char *owner, const struct pollfd *unless, int *cell_fd,
    int wait_ms, struct err *err);
/* Give it back, between two requests to the cell; closing the connection alone
 * ends the session. */
void session_holder_return(int connection);
/* End the session; returns when it has ended.  ERR_NOT_FOUND as above. */
int session_holder_end(const char *folder, const char *id,
    const unsigned char *owner, struct err *err);

#endif
