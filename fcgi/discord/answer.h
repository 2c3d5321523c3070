#ifndef ANSWER_H
#define ANSWER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The JSON of what Discord is answered at once.  Pure functions; each returns
 * heap that the caller frees.  Every message carries allowed_mentions with an
 * empty parse list.  Texts are valid UTF-8 and within Discord's limits.
 */

/* 1: to a PING. */
char *answer_pong(void);
/* 4: a message that only the invoker sees. */
char *answer_message(const char *text);
/* 5: "thinking…".  Whether only the invoker sees it cannot be changed later. */
char *answer_deferral(bool is_private);
/* 6: a button's press is taken, the message stays as it is for now. */
char *answer_deferred_update(void);
/* 7: the message of the button becomes this text, without buttons. */
char *answer_update(const char *text);
/* 8: no suggestions. */
char *answer_no_choices(void);

/* 4, private, with the buttons delete-yes:<view> and delete-no:<view>. */
char *answer_delete_question(const char *locale, int64_t view_id);
/* 9: the editor py:<view>, with the inputs `code` and `stdin`; the latter holds
 * `input` already. */
char *answer_editor(const char *locale, int64_t view_id, const char *input);

#endif
