/* SPDX-License-Identifier: MIT */
#include "session.h"

#include "../base/err.h"
#include "db.h"

int
session_find(struct db *db, const char *sandbox, struct session *session,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_SESSION_FIND);
	int result;

	*session = (struct session){ 0 };
	db_bind_text(s, ":sandbox", sandbox);
	result = db_step(db, s, err);
	if (result != 1)
		return result < 0 ? err_wrap(err, "find a session") : 0;
	*session = (struct session){
		.started_at = db_column_int(s, 0),
		.kept_at = db_column_int(s, 1),
		.ended = db_column_int(s, 2),
		.names = db_column_int(s, 3),
		.bytes = db_column_int(s, 4),
	};
	return 0;
}

int
session_put(struct db *db, const char *sandbox, const struct session *session,
    struct err *err)
{
	auto_stmt struct stmt *s = db_statement(db, STATEMENT_SESSION_PUT);

	db_bind_text(s, ":sandbox", sandbox);
	db_bind_int(s, ":started_at", session->started_at);
	db_bind_int(s, ":kept_at", session->kept_at);
	db_bind_int(s, ":ended", session->ended);
	db_bind_int(s, ":names", session->names);
	db_bind_int(s, ":bytes", session->bytes);
	/* a power cut ends what it is about, too */
	return db_run_quick(db, s, err) < 0 ? err_wrap(err, "note a session") :
					      0;
}
