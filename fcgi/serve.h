#ifndef SERVE_H
#define SERVE_H

struct config;
struct err;
struct http_request;

/*
 * The loop of a FastCGI program: take a request, have it answered, finish the
 * answer, and only then do what may follow it.  It ends at SIGTERM or SIGINT,
 * after the requests that had already connected were answered.
 */
struct serve {
	int listen_fd;
	char *path; /* of our own socket; NULL when it was handed to us */
};

struct serve_calls {
	void (*answer)(void *arg, struct http_request *req);
	void (*after)(void *arg); /* may be NULL */
	void *arg;
};

/* Listen on <state dir>/<name>, or take over the socket that a supervisor
 * passes as descriptor 3 (LISTEN_FDS, LISTEN_PID). */
int serve_open(struct serve *serve, const struct config *config,
    const char *name, struct err *err);
/* Run until a signal ends it.  0, or -1 when waiting itself failed. */
int serve_run(struct serve *serve, const struct serve_calls *calls,
    struct err *err);
/* Close, and remove the socket file if it is our own. */
void serve_close(struct serve *serve);

#endif
