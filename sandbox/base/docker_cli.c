#include "docker_cli.h"

#include <string.h>

#include "cleanup.h"
#include "err.h"
#include "process.h"

#define VERSION_MS 3000
#define VERSION_MAX 1024

int
docker_cli_check(const char *binary, struct err *err)
{
	auto_free char *program = xstrdup(binary);
	char *argv[] = { program, (char[]){ "--version" }, NULL };
	struct process_spec spec = { .argv = argv,
		.output_max = VERSION_MAX,
		.timeout_ms = VERSION_MS };
	struct process_result result;
	struct err failure;
	bool podman;

	if (process_run(&spec, &result, &failure) != 0)
		return 0;
	podman = strcasestr(buf_str(&result.out), "podman") != NULL;
	process_result_release(&result);
	if (!podman)
		return 0;
	return err_set(err, ERR_CONFIG,
	    "DOCKER_BINARY: podman is not supported: it refuses the options by "
	    "which a sandbox's quota holds (a volume with volume-nocopy, a "
	    "tmpfs with nr_inodes)");
}
