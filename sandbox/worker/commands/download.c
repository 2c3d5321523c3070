/* SPDX-License-Identifier: MIT */
#include "download.h"

#include <inttypes.h>
#include <stdlib.h>

#include "../../base/log.h"
#include "../../rest/rest.h"
#include "command.h"

static void
not_fetched(struct task *task, const char *text)
{
	buf_adds(&task->message.lead, _(text));
	task->outcome = "not fetched";
}

void *
download(struct task *task, const char *url, int64_t max, size_t *len)
{
	struct err err = { 0 };
	void *data = NULL;
	enum rest_outcome outcome = rest_download(task->worker->rest, url,
	    (size_t)max, &data, len, &err);

	if (outcome == REST_DONE)
		return data;
	free(data);
	log_warn("attachment: %s job=%" PRId64, err.text, task->job->id);
	not_fetched(task,
	    outcome == REST_GONE ? TEXT_UPLOAD_GONE : TEXT_NOT_FETCHED);
	return NULL;
}

void
download_not_as_announced(struct task *task)
{
	log_warn("attachment: not as long as announced job=%" PRId64,
	    task->job->id);
	not_fetched(task, TEXT_NOT_FETCHED);
}
