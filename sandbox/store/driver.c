/* SPDX-License-Identifier: MIT */
#include "driver.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/config_database.h"
#include "../base/err.h"

#define OBJECT "libinline-store-pg.so"
#define SYMBOL "inline_store_driver"

/* It stays loaded as long as the program. */
static const struct db_driver *
load(struct err *err)
{
	auto_free char *folder = config_lib_dir();
	auto_free char *path = xprintf("%s/" OBJECT, folder);
	const struct db_driver *driver;
	void *object;

	if (access(path, F_OK) != 0) {
		(void)err_set(err, ERR_CONFIG,
		    "IL_DATABASE: this build has no %s: build it where libpq "
		    "is (Debian: libpq-dev)",
		    path);
		return NULL;
	}
	object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	driver = object != NULL ? dlsym(object, SYMBOL) : NULL;
	if (driver == NULL)
		(void)err_set(err, ERR_CONFIG, "IL_DATABASE: %s", dlerror());
	return driver;
}

const struct db_driver *
driver_find(const char *address, struct err *err)
{
	static const struct db_driver *loaded;

	if (!config_database_is_server(address))
		return &sqlite_driver;
	if (loaded == NULL)
		loaded = load(err);
	if (loaded == NULL)
		return NULL;
	if (strcmp(loaded->version, INLINE_VERSION) == 0 &&
	    loaded->statement_count == STATEMENT_COUNT)
		return loaded;
	(void)err_set(err, ERR_CONFIG,
	    OBJECT " is of version %.20s, this program of " INLINE_VERSION,
	    loaded->version);
	return NULL;
}
