/* SPDX-License-Identifier: MIT */
#ifndef RENDER_SESSION_H
#define RENDER_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "../../protocol/frame.h"

struct config;
struct message;
struct session;

/* What is kept from run to run: the commands for it, and what a run says. */
void render_session_start(struct message *message, const struct config *config);
void render_session_stop(struct message *message, bool was_on);
/* until: its interpreter is kept till then, Unix seconds; 0: there is none. */
void render_session_status(struct message *message,
    const struct session *session, int64_t until);
/* Below a run: why it had to begin anew; 0: it had not. */
void render_session_ended(struct message *message, enum kept_end why);

#endif
