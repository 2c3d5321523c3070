/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <stdlib.h>
#include <string.h>

#include "../../base/cleanup.h"
#include "../../base/utf8.h"
#include "../render/render_program.h"
#include "command.h"
#include "download.h"

#define MARK "\xef\xbb\xbf" /* "I am UTF-8", at the begin of a file */

/* Any bytes: what was announced as text need not be any. */
static bool
add_script(struct task *task, struct blocks *blocks, const char *name,
    const char *data, size_t len)
{
	if (memchr(data, '\0', len) != NULL || !utf8_valid(data, len)) {
		render_not_text(&task->message, name);
		task->outcome = "not text";
		return false;
	}
	if (len >= strlen(MARK) && memcmp(data, MARK, strlen(MARK)) == 0) {
		data += strlen(MARK);
		len -= strlen(MARK);
	}
	blocks_add(blocks, data, len);
	return true;
}

/* Those of the job, which stand in lines; as long in all as announced. */
static bool
add_scripts(struct task *task, struct blocks *blocks)
{
	char *links = task->job->attachment_url;
	char *names = task->job->attachment_name;
	int64_t left = task->job->attachment_size;
	char *link;

	while ((link = strsep(&links, "\n")) != NULL) {
		const char *name = strsep(&names, "\n");
		auto_free char *data = NULL;
		size_t len = 0;

		data = download(task, link,
		    left < COMMAND_SCRIPT_MAX ? left : COMMAND_SCRIPT_MAX,
		    &len);
		if (data == NULL ||
		    !add_script(task, blocks, name == NULL ? "" : name, data,
			len))
			return false;
		left -= (int64_t)len;
	}
	if (left != 0)
		download_not_as_announced(task);
	return left == 0;
}

bool
program_find(struct task *task, struct blocks *blocks)
{
	const struct job *job = task->job;

	blocks_find(blocks, job->text);
	if (job->attachment_url[0] != '\0' && !add_scripts(task, blocks))
		return false;
	if (blocks->count > 0 && !blocks->too_many && !blocks->code.overflow)
		return true;
	if (blocks->count > 0) {
		render_too_many_blocks(&task->message, BLOCKS_MAX);
		task->outcome = "too many blocks";
	} else {
		render_no_code(&task->message, blocks->others,
		    blocks->other_count);
		task->outcome = "no code";
	}
	return false;
}

bool
program_take_upload(struct task *task)
{
	auto_blocks struct blocks blocks = { .count = 0 };
	struct job *job = task->job;

	blocks_find(&blocks, "");
	if (!add_scripts(task, &blocks))
		return false;
	free(job->text);
	job->text = xstrdup(buf_str(&blocks.code));
	job->has_text = true;
	return true;
}
