#include "class.h"

#include <stddef.h>
#include <string.h>

#include "../base/config.h"

/* No row has both the workspace and network: no code of a user's runs where
 * there is network. */
static const struct cell_class classes[] = {
	{ .name = "user",
	    .workspace_at = "/workspace",
	    .packages_at = "/workspace/.site-packages",
	    .warm = true },
	{ .name = "pip", .packages_at = "/site", .network = true },
};

const struct cell_class *
class_find(const char *name)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (strcmp(classes[i].name, name) == 0)
			return &classes[i];
	}
	return NULL;
}

const char *
class_network(const struct cell_class *class, const struct config *config)
{
	return class->network ? config->pip_network : "none";
}

const char *
class_ca_bundle(const struct cell_class *class, const struct config *config)
{
	return class->network ? config->pip_ca_bundle : "";
}

int64_t
class_memory(const struct cell_class *class, const struct config *config)
{
	return class->network ? config->pip_memory : config->memory;
}

int64_t
class_file_max(const struct cell_class *class, const struct config *config)
{
	return class->network || config->pip_quota > config->quota ?
	    config->pip_quota :
	    config->quota;
}
