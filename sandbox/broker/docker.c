/* SPDX-License-Identifier: MIT */
/*
 * The calls of the Docker CLI, one row each; those that run a container are
 * functions.
 */
#include "broker/docker.h"

#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/config.h"

#define DERIVED "inline.derived=1"
#define HEX "0123456789abcdef"

/* The recipe runs as root, to write where the image's owner may, and has
 * nothing else: no network, no capability, no mount, and the lowest share of
 * the processors. */
void
docker_argv_derive(struct argv *argv, const char *binary, const char *name,
    const char *instance, const char *image, const char *recipe)
{
	auto_free char *ours = xprintf("inline.instance=%s", instance);

	argv_init(argv,
	    ARGV_WORDS(binary, "run", "--pull", "never", "--init=false",
		"--no-healthcheck", "--network", "none", "--user", "0:0",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--ipc", "private", "--log-driver", "none", "--stop-signal",
		"SIGKILL", "--oom-score-adj", "900", "--memory", "512m",
		"--memory-swap", "512m", "--pids-limit", "64", "--cpus", "1",
		"--cpu-shares", "256", "--workdir", "/", "--label", DERIVED,
		"--label", ours, "--name", name, "--entrypoint", "python3",
		image, "-I", "-B", "-c", recipe));
}

/* The image is swept like a derived one. */
void
docker_argv_import(struct argv *argv, const char *binary, const char *instance,
    const char *archive, const char *image)
{
	argv_init(argv, ARGV_WORDS(binary, "import"));
	argv_option(argv, "--change", "LABEL " DERIVED);
	argv_option(argv, "--change", "LABEL inline.instance=%s", instance);
	argv_add(argv, archive);
	argv_add(argv, image);
}

#define CALL_WORDS 8
#define OURS "label=inline.instance="
static const char label_derived[] = "label=" DERIVED;
static const struct {
	const char *before; /* the subject, in the same word */
	const char *words[CALL_WORDS];
} calls[] = {
	[DOCKER_REMOVE] = { "", { "rm", "--force", "--volumes" } },
	[DOCKER_WAIT] = { "", { "wait" } },
	[DOCKER_PROBE] = { "", { "image", "inspect", "--format", "{{.Id}}" } },
	[DOCKER_LABELS] = { "",
	    { "image", "inspect", "--format",
		"{{.Id}} {{json .Config.Labels}}" } },
	[DOCKER_PULL] = { "", { "pull", "--quiet" } },
	[DOCKER_COMMIT] = { "",
	    { "commit", "--change", "USER 65532:65532", "--change",
		"ENTRYPOINT []", "--change", "CMD [\"python3\"]" } },
	[DOCKER_CELLS] = { OURS,
	    { "ps", "--all", "--quiet", "--no-trunc", "--filter" } },
	[DOCKER_VOLUMES] = { OURS, { "volume", "ls", "--quiet", "--filter" } },
	[DOCKER_DERIVED] = { OURS,
	    { "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "--filter",
		label_derived, "--filter" } },
	[DOCKER_REMOVE_VOLUMES] = { "", { "volume", "rm", "--force" } },
	[DOCKER_REMOVE_IMAGES] = { "", { "image", "rm" } },
};

void
docker_argv(struct argv *argv, const char *binary, enum docker_call call,
    const char *subject)
{
	argv_init(argv, ARGV_WORDS(binary));
	argv_add_all(argv, calls[call].words);
	if (subject != NULL)
		argv_addf(argv, "%s%s", calls[call].before, subject);
}

void
docker_start(struct subprocess *process, const struct host *host,
    enum docker_call call, const char *subject, int timeout_ms,
    subprocess_fn done, void *arg)
{
	auto_argv struct argv argv;

	docker_argv(&argv, host->config->docker_binary, call, subject);
	subprocess_start(process, host->loop, &argv, timeout_ms, done, arg);
}

/* The CLI reports causes in words only, so phrases are searched; no user's code
 * can write them. */
enum docker_failure
docker_classify(const struct process_result *result)
{
	/* The first row that matches decides. */
	static const struct {
		const char *phrase;
		enum docker_failure failure;
	} table[] = {
		{ "No such container", DOCKER_ABSENT },
		{ "No such image", DOCKER_IMAGE },
		{ "Unable to find image", DOCKER_IMAGE },
		{ "mount local volume", DOCKER_MOUNT },
		{ "mounting volume", DOCKER_MOUNT },
		{ "structure needs cleaning", DOCKER_MOUNT },
		{ "Cannot connect to the Docker", DOCKER_ENGINE },
		{ "docker daemon running", DOCKER_ENGINE },
		{ "error during connect", DOCKER_ENGINE },
		{ "connection refused", DOCKER_ENGINE },
		{ "EOF", DOCKER_ENGINE },
		{ "context deadline exceeded", DOCKER_ENGINE },
	};

	if (result->outcome != PROCESS_EXITED)
		return DOCKER_ENGINE;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcasestr(buf_str(&result->err), table[i].phrase) != NULL)
			return table[i].failure;
	}
	return DOCKER_OTHER;
}

bool
docker_next(const char *text, size_t *pos, bool derived, char line[128])
{
	const char *at = text + *pos;
	const char *prefix = derived ? "inline-derived:" : "";
	size_t len = strlen(prefix);

	if (strncmp(at, prefix, len) != 0)
		return false;
	len += strspn(at + len, derived ? HEX "-" : HEX);
	if ((at[len] != '\n' && at[len] != '\0') ||
	    (derived ? len > 127 : len < 12 || len > 64))
		return false;
	memcpy(line, at, len);
	line[len] = '\0';
	*pos += len + (at[len] == '\n' ? 1 : 0);
	return true;
}
