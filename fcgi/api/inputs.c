/* SPDX-License-Identifier: MIT */
#include "inputs.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app.h"
#include "reply.h"
#include "../server/http.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/protocol/cell.h"

#define FILE_MODE 0644

bool
api_read_request(struct execute_request *request, enum execute_route route,
    struct api_app *app, struct http_request *req)
{
	auto_buf struct buf body = BUF_INIT(API_BODY_MAX);
	struct detail detail;

	if (req->length > (int64_t)API_BODY_MAX) {
		reply_detail(req, 413, NULL, "The body is too long");
		return false;
	}
	if (!http_read_all(req, &body))
		return false; /* nobody is there any more */
	if (execute_parse(request, route, app->eval_terms.timeout_max_ms,
		http_param(req, "CONTENT_TYPE"), buf_str(&body), body.len,
		&detail))
		return true;
	reply_refuse(req, NULL, &detail);
	return false;
}

/* Map what the id names; an empty file cannot be mapped and need not be.
 * False: there is no such file, or it cannot be had. */
static bool
map_file(struct cell_input *input, struct api_app *app,
    const struct execute_text *id)
{
	struct stat st;
	struct err err;
	auto_close int fd = filestore_get(&app->store, id->text, id->len, NULL,
	    &err);
	void *data;

	if (fd < 0 || fstat(fd, &st) != 0)
		return false;
	*input = (struct cell_input){ .mode = FILE_MODE, .content = { "", 0 } };
	if (st.st_size == 0)
		return true;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return false;
	input->content = (struct cell_bytes){ data, (size_t)st.st_size };
	return true;
}

bool
api_inputs_open(struct api_inputs *in, struct api_app *app,
    struct http_request *req, struct execute_request *request)
{
	const struct execute_files *files = &request->files;
	struct detail detail;

	*in = (struct api_inputs){ .items = pyjson_tree_array(&request->doc,
				       files->count + 1, sizeof(*in->items)) };
	/* The code itself comes first, and is not of the store. */
	if (request->code.text != NULL) {
		in->own = in->count = 1;
		in->items[0] = (struct cell_input){ .path = "__main__.py",
			.content = { request->code.text, request->code.len },
			.mode = FILE_MODE };
	}
	for (size_t i = 0; i < files->count; i++) {
		if (!map_file(&in->items[in->count], app,
			&files->items[i].id)) {
			api_inputs_close(in);
			(void)execute_refuse_file(&files->items[i], &detail);
			reply_refuse(req, NULL, &detail);
			return false;
		}
		in->count++;
	}
	/* Their paths are looked at when all are there: 404 comes first. */
	in->wrong = execute_stage(request, in->items + in->own);
	return true;
}

void
api_inputs_close(struct api_inputs *in)
{
	for (size_t i = in->own; i < in->count; i++) {
		struct cell_bytes *content = &in->items[i].content;

		if (content->len > 0)
			(void)munmap((void *)(uintptr_t)content->data,
			    content->len);
	}
}
