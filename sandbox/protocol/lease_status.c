/* SPDX-License-Identifier: MIT */
#include "lease_status.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config.h"
#include "../base/config_images.h"
#include "../base/err.h"
#include "../base/shared_file.h"
#include "../base/text.h"
#include "frame.h"

/* One of another version may have other places. */
#define TOLD_FILE "broker/status-" INLINE_VERSION
#define TOLD_MAX 8192
/* A broker that has told nothing for so long hangs. */
#define SILENCE_MS (3 * LEASE_STATUS_TELL_MS)
#define TRIES 3

struct lease_status_file {
	_Atomic int64_t turn;	 /* odd: it is being written */
	_Atomic int64_t writer;	 /* 0: none */
	_Atomic int64_t told_ms; /* monotonic */
	_Atomic int64_t len;
	unsigned char frame[TOLD_MAX];
};

#define ARRAY(a) (a), sizeof(a)

/* The texts are others': of the engine, of a cell, or cut somewhere. */
void
lease_status_parse(struct lease_status *status, const struct frame_view *view)
{
	const struct {
		enum frame_tag tag;
		int64_t *value;
	} numbers[] = {
		{ TAG_CELLS, &status->cells },
		{ TAG_LEASED, &status->leased },
		{ TAG_STARTING, &status->starting },
		{ TAG_WAITING, &status->waiting },
		{ TAG_FREE_BYTES, &status->free_bytes },
		{ TAG_PROMISED, &status->promised },
		{ TAG_FLOOR, &status->floor },
		{ TAG_SANDBOXES, &status->sandboxes },
		{ TAG_ISOLATION, &status->isolation },
		{ TAG_ENGINE_AGE, &status->engine_age_ms },
		{ TAG_START_FAILURES, &status->start_failures },
		{ TAG_START_PENDING, &status->start_pending_ms },
	};
	const struct {
		enum frame_tag tag;
		char *text;
		size_t size;
	} texts[] = {
		{ TAG_IMAGE_NAME, ARRAY(status->image_name) },
		{ TAG_IMAGES, ARRAY(status->images) },
		{ TAG_CHAT_IMAGES, ARRAY(status->chat_images) },
		{ TAG_TROUBLE, ARRAY(status->trouble) },
		{ TAG_PYTHON, ARRAY(status->python) },
		{ TAG_TEXT, ARRAY(status->isolation_reason) },
	};
	int64_t flag = 0;

	*status = (struct lease_status){ .engine_age_ms = -1 };
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)frame_get_int(view, numbers[i].tag, numbers[i].value);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		(void)frame_get_text(view, texts[i].tag, texts[i].text,
		    texts[i].size);
		text_clean_array(texts[i].text, texts[i].size);
	}
	status->engine = frame_get_int(view, TAG_ENGINE, &flag) && flag == 1;
	status->image = frame_get_int(view, TAG_IMAGE, &flag) && flag == 1;
	if (images_check(status->images) != NULL)
		status->images[0] = '\0';
	if (images_check(status->chat_images) != NULL)
		status->chat_images[0] = '\0';
}

int64_t
lease_status_room(const struct lease_status *status)
{
	return status->free_bytes - status->floor - status->promised;
}

/* ---- the file ---- */

struct lease_status_file *
lease_status_open(const struct config *config, struct err *err)
{
	auto_free char *path = config_state_path(config, TOLD_FILE);
	struct lease_status_file *file = shared_file_open(path, sizeof(*file),
	    err);

	if (file != NULL) {
		/* one that was killed may have left it half written */
		file->turn = 0;
		file->len = 0;
		file->writer = shared_file_writer();
	}
	return file;
}

void
lease_status_close(struct lease_status_file *file, const struct config *config)
{
	auto_free char *path = config_state_path(config, TOLD_FILE);

	if (file == NULL)
		return;
	file->writer = 0; /* il-fcgi may have mapped it */
	(void)unlink(path);
	shared_file_close(file, sizeof(*file));
}

void
lease_status_tell(struct lease_status_file *file, const struct frame *frame)
{
	if (file == NULL || frame->len > sizeof(file->frame))
		return;
	file->turn++;
	atomic_thread_fence(memory_order_seq_cst);
	memcpy(file->frame, frame->data, frame->len);
	atomic_thread_fence(memory_order_seq_cst);
	file->len = (int64_t)frame->len;
	file->told_ms = clock_monotonic_ms();
	file->turn++;
}

/* Its length; 0: it was being written each time that we looked. */
static size_t
copy_frame(const struct lease_status_file *file, unsigned char *copy)
{
	for (int i = 0; i < TRIES; i++) {
		int64_t turn = file->turn;
		int64_t len = file->len;

		if (turn % 2 != 0 || len < 0 || len > TOLD_MAX)
			continue;
		atomic_thread_fence(memory_order_seq_cst);
		memcpy(copy, file->frame, (size_t)len);
		atomic_thread_fence(memory_order_seq_cst);
		if (file->turn == turn)
			return (size_t)len;
	}
	return 0;
}

int
lease_status_read(const struct config *config, struct lease_status *status,
    struct err *err)
{
	auto_free char *path = config_state_path(config, TOLD_FILE);
	const struct lease_status_file *file = shared_file_read(path,
	    sizeof(*file), err);
	unsigned char copy[TOLD_MAX];
	struct frame_view view;
	int64_t age_ms;
	bool runs;
	size_t len;

	*status = (struct lease_status){ .engine_age_ms = -1 };
	if (file == NULL)
		return -1;
	runs = shared_file_writer_is_there(file->writer);
	age_ms = clock_monotonic_ms() - file->told_ms;
	len = copy_frame(file, copy);
	shared_file_close(file, sizeof(*file));
	if (!runs)
		return err_set(err, ERR_UNAVAILABLE, "il-sandboxd has ended");
	if (age_ms < 0 || age_ms > SILENCE_MS)
		return err_set(err, ERR_TIMEOUT, "il-sandboxd is silent");
	if (!frame_parse(&view, copy, len) || view.kind != FRAME_STATUS_IS)
		return err_set(err, ERR_PROTOCOL, "%s: is no status", path);
	lease_status_parse(status, &view);
	if (status->engine_age_ms >= 0)
		status->engine_age_ms += age_ms;
	if (status->start_pending_ms > 0)
		status->start_pending_ms += age_ms;
	return 0;
}
