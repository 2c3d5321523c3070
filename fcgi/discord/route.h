#ifndef ROUTE_H
#define ROUTE_H

struct context;
struct interaction;
struct reply;

/*
 * From an interaction (not a PING) to its answer: two tables, one of slash
 * commands in route.c and one of buttons and editors in actions.c.
 */
void route(const struct context *context, const struct interaction *in,
    struct reply *reply);
/* Of these the message components and modals. */
void route_action(const struct context *context, const struct interaction *in,
    struct reply *reply);

/* Bounds, in bytes, of what people may send; everything longer is refused with
 * a friendly text. */
#define ROUTE_PATH_MAX 1024
#define ROUTE_CODE_MAX 24000 /* 6,000 code points */
#define ROUTE_CONTENT_MAX 65536
#define ROUTE_PACKAGES_MAX 2000
#define ROUTE_URL_MAX 2048
#define ROUTE_NAME_MAX 255
#define ROUTE_PAGE_MAX 1000000

#endif
