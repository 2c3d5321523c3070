#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../sandbox/protocol/conversation.h"
#include "../../sandbox/protocol/lease.h"

struct api_app;
struct http_request;

/*
 * One run in a leased cell, while its client is there: whoever hangs up has it
 * ended at once, since the lease closes then.
 */
enum api_end {
	API_RESULT,  /* run.result says how */
	API_GONE,    /* the client hung up: nothing is to be answered */
	API_REFUSED, /* there is no cell: run.refusal says why */
	API_LOST,    /* the cell broke off: run.reference stands in the log */
};

/* What is run, for metrics_open(): the names of enum api_kind. */
enum api_kind { API_EVAL, API_EXECUTE, API_STREAM, API_BASH };
extern const char *const api_kinds[];

/* The log's words for one lost cell; the answer has them as a header. */
#define API_REFERENCE_LEN 16
#define API_REFERENCE_HEADER "Inline-Reference: %s\r\n"

struct api_run {
	enum api_end end;
	enum refusal refusal;
	struct cell_result result;
	bool started;
	bool lost;   /* the cell, whatever else is known */
	bool enough; /* set by the event function: the run is to end, since
		      * no more of its output is wanted */
	char reference[API_REFERENCE_LEN + 1];
	int64_t waited_us;   /* for the cell */
	int64_t duration_us; /* from there to the end */
};

/* Why a file does not come back, by enum left_out, in a few words. */
extern const char *const api_run_left_out[];

/* What comes from the cell, but for the result. */
typedef void api_event_fn(void *arg, const struct cell_event *event);

/* interpreter NULL: the default one. */
void api_run(struct api_run *run, struct api_app *app, struct http_request *req,
    const char *interpreter, const struct cell_request *request,
    api_event_fn *event, void *arg);

/* The same in a cell that is leased already, a session's: it goes on to its end
 * when the client hangs up, since the session goes on, too.  broker_fd: where
 * it is told what has become of the cell (lease_is_out_of_memory()). */
void api_run_in(struct api_run *run, struct api_app *app,
    struct http_request *req, int cell_fd, int broker_fd,
    const struct cell_request *request, api_event_fn *event, void *arg);

/* Count how it ended. */
void api_run_count(const struct api_run *run, struct api_app *app,
    enum api_kind kind);

/* The answer of /v1 to API_LOST: 500. */
void api_answer_lost(struct http_request *req, const struct api_run *run);

#endif
