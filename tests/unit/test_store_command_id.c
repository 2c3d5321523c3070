/* SPDX-License-Identifier: MIT */
/* The ids of registered commands, and how a text names a command. */
#include "store/commands.h"

#include "store.h"

static const char *
shown(const struct command_ids *ids, const char *text)
{
	static char result[256];
	auto_buf struct buf out = BUF_INIT(sizeof(result) - 1);

	command_add_text(&out, ids, text);
	(void)snprintf(result, sizeof(result), "%s", buf_str(&out));
	return result;
}

int
main(void)
{
#define COMMAND(name, id) "{\"name\":\"" name "\",\"type\":1,\"id\":\"" id "\"}"
	static const char first[] = "[" COMMAND("il",
	    "77") "," COMMAND("health", "78") "," COMMAND("of another time",
	    "79") "]";
	static const char second[] = "[" COMMAND("il",
	    "9223372036854775807") "]";
	static const char twice[] = "[" COMMAND("il", "1") "," COMMAND("il",
	    "2") "]";
	static const char odd[] = "[3,{\"name\":\"il\"}," COMMAND("il",
	    "0") "," COMMAND("il", "1x") "," COMMAND("il",
	    "-1") ",{\"type\":3,"
		  "\"name\":\"Run\",\"id\":\"7\"},{\"type\":1,\"name\":\"il\","
		  "\"id\":[8]}]";
	struct command_ids ids = { { 0 } };
	struct err err = { 0 };
	struct db *db;

	(void)store_make();
	db = store_open(DB_WORKER);
	is_int(command_ids_load(db, 5, &ids, &err), 0, "nothing is kept yet");
	is_str(shown(&ids, "`/il create` it"), "`/il create` it", "a name");
	is_str(shown(NULL, "`/health`"), "`/health`", "without ids, too");

	is_int(command_ids_keep(db, 5, first, &err), 0, "they are kept");
	(void)command_ids_load(db, 5, &ids, &err);
	is_str(shown(&ids, "Do `/il create`, `/il pip`."),
	    "Do </il create:77>, </il pip:77>.", "two that are clicked");
	is_str(shown(&ids, "`/health`"), "</health:78>", "not under /il");
	is_str(shown(&ids, "`/il write-edit` `/il` `/create` `/il rm x`"),
	    "`/il write-edit` `/il` `/create` `/il rm x`",
	    "nothing else is one");
	is_str(shown(&ids, "`~/il create` /il create `/il create"),
	    "`~/il create` /il create `/il create", "nor without back-ticks");
	is_str(shown(&ids, "`a`/`/il py`"), "`a`/`/il py`",
	    "what stands askew stays");

	is_int(command_ids_keep(db, 6, second, &err), 0,
	    "those of another application");
	(void)command_ids_load(db, 5, &ids, &err);
	is_int(ids.of[JOB_CREATE], 77, "change nothing");
	is_int(command_ids_keep(db, 5, second, &err), 0, "registered anew");
	(void)command_ids_load(db, 5, &ids, &err);
	is_str(shown(&ids, "`/il create`"), "</il create:9223372036854775807>",
	    "the new ids count");
	is_int(ids.of[JOB_HEALTH], 0, "and no old ones");
	ok(command_ids_keep(db, 5, twice, &err) < 0, "a name twice fails");
	(void)command_ids_load(db, 5, &ids, &err);
	is_int(ids.of[JOB_CREATE], INT64_MAX, "and changes nothing");
	ok(command_ids_keep(db, 5, "[", &err) < 0, "as does no JSON");
	is_int(command_ids_keep(db, 5, odd, &err), 0, "odd ones");
	is_int(store_sql("SELECT count(*) FROM command_ids WHERE "
			 "application_id = 5"),
	    0, "are left out");
	db_close(db);

	db = store_open(DB_FRONT);
	(void)memset(&ids, 0, sizeof(ids));
	is_int(command_ids_load(db, 6, &ids, &err), 0, "the front may read");
	is_int(ids.of[JOB_PY], INT64_MAX, "what was kept");
	db_close(db);
	return tap_done();
}
