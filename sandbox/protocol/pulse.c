/* SPDX-License-Identifier: MIT */
#include "protocol/pulse.h"

#include <stdatomic.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/log.h"
#include "base/shared_file.h"

/* One of another version may have other places. */
#define PULSE_FILE "worker/pulse-" INLINE_VERSION

struct pulse {
	struct {
		_Atomic int64_t writer; /* 0: no worker has the slot */
		_Atomic int64_t beat_ms;
		_Atomic int64_t due_ms;
		_Atomic int64_t rests;
	} slots[PULSE_SLOTS];
};

struct pulse *
pulse_open(const struct config *config, struct err *err)
{
	auto_free char *path = config_state_path(config, PULSE_FILE);

	return shared_file_open(path, sizeof(struct pulse), err);
}

void
pulse_beat(struct pulse *pulse, int64_t slot, int64_t within_ms, bool rests)
{
	int64_t now_ms = clock_monotonic_ms();

	if (pulse == NULL || slot < 0 || slot >= PULSE_SLOTS)
		return;
	pulse->slots[slot].beat_ms = now_ms;
	pulse->slots[slot].due_ms = now_ms + within_ms + PULSE_MORE_MS;
	pulse->slots[slot].rests = rests;
	pulse->slots[slot].writer = shared_file_writer();
}

void
pulse_close(struct pulse *pulse, int64_t slot)
{
	if (pulse != NULL && slot >= 0 && slot < PULSE_SLOTS)
		pulse->slots[slot].writer = 0;
	shared_file_close(pulse, sizeof(*pulse));
}

void
pulse_look(const struct config *config, struct pulse_count *count,
    struct buf *still)
{
	auto_free char *path = config_state_path(config, PULSE_FILE);
	struct err err = { 0 };
	const struct pulse *pulse = shared_file_read(path, sizeof(*pulse),
	    &err);

	*count = (struct pulse_count){ .heard_ms = -1 };
	if (pulse == NULL) {
		log_debug("pulse: %s", err.text);
		return;
	}
	for (size_t i = 0; i < PULSE_SLOTS; i++) {
		int64_t writer = pulse->slots[i].writer;
		int64_t beat_ms = pulse->slots[i].beat_ms;
		int64_t due_ms = pulse->slots[i].due_ms;
		int64_t now_ms = clock_monotonic_ms();

		/* a beat that is yet to come is of the last boot */
		if (!shared_file_writer_is_there(writer) || beat_ms > now_ms)
			continue;
		count->alive++;
		if (now_ms > due_ms) {
			if (still != NULL)
				buf_addf(still, " %d",
				    (int)shared_file_writer_pid(writer));
			continue;
		}
		count->moving++;
		if (pulse->slots[i].rests == 0)
			beat_ms = INT64_MAX;
		if (beat_ms > count->heard_ms)
			count->heard_ms = beat_ms;
	}
	shared_file_close(pulse, sizeof(*pulse));
}
