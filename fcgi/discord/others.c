/* SPDX-License-Identifier: MIT */
#include "others.h"

#include "../server/http.h"
#include "held.h"

#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/config.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/store/holder.h"
#include "../../sandbox/store/node.h"

#define NODE_RETRY_MS 1000

void
others_check(struct db *db, const struct config *config, int64_t *retry_ms)
{
	char instance[CONFIG_INSTANCE_LEN + 1];
	int64_t now_ms = clock_monotonic_ms();
	struct err err;

	if (!holder_is_shared(db) || node_number(db) != 0 || now_ms < *retry_ms)
		return;
	*retry_ms = now_ms + NODE_RETRY_MS;
	if (config_node_instance(config, instance, &err) != 0 ||
	    node_find(db, config->node, instance, &err) < 0)
		log_warn("%s", err.text);
}

void
others_notify(struct db *db, const int64_t *homes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bool told = homes[i] == node_number(db);

		for (size_t j = 0; j < i && !told; j++)
			told = homes[j] == homes[i];
		if (!told)
			holder_notify(db, homes[i]);
	}
}

void
others_hear(struct db *db, struct held *held)
{
	const char *json = NULL;
	int64_t job_id;
	int fd = -1;

	if (db == NULL)
		return;
	while (held->elsewhere > 0 &&
	    (job_id = holder_response(db, &fd, &json)) != 0)
		(void)held_respond(held, job_id, json);
	if (held->elsewhere == 0)
		holder_await_none(db);
	held_watch(held, fd);
	http_rest();
}

void
others_cancel(struct db *db, int64_t home, int64_t job_id)
{
	holder_cancel(db, home, job_id);
}
