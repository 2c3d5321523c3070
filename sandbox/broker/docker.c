/* SPDX-License-Identifier: MIT */
/*
 * One row or one function for each call of the Docker CLI, so that what a
 * container may do can be read, and tested, in one place.
 */
#include "docker.h"

#include <inttypes.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/config.h"
#include "class.h"

#define DERIVED "inline.derived=1"

/* The same in every container.  Each is explained in README.md. */
static const char *const fixed_options[] = { "--detach", "--rm", "--pull",
	"never", "--init=false", "--no-healthcheck", "--read-only",
	"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--ipc",
	"private", "--log-driver", "none", "--stop-signal", "SIGKILL",
	"--oom-score-adj", "500", "--hostname", "inline", "--workdir", "/",
	"--env", "LANG=C.UTF-8", "--ulimit", "core=0", "--ulimit",
	"nofile=1024:1024", "--ulimit", "msgqueue=0:0", NULL };

/* After the image: sandbox/cell/README.md says why these flags. */
static const char *const cell_command[] = { "-s", "-u", "-B",
	"/run/cell/cell.py", "/run/inline/cell.sock", NULL };

/* Where the cell puts the source of a run; the run may read it. */
static const char code_tmpfs[] =
    "/code:rw,noexec,nosuid,nodev,size=20m,nr_inodes=16,mode=0755";

/*
 * One field of a --mount, which is a line of CSV: quoted when it holds what
 * would end it.
 */
static void
csv_add(struct buf *line, const char *key, const char *value)
{
	bool quote = strpbrk(value, ",\"\r\n") != NULL;

	if (line->len > 0)
		buf_addc(line, ',');
	if (quote)
		buf_addc(line, '"');
	buf_adds(line, key);
	buf_addc(line, '=');
	for (; *value != '\0'; value++) {
		if (*value == '"')
			buf_addc(line, '"');
		buf_addc(line, *value);
	}
	if (quote)
		buf_addc(line, '"');
}

static void
add_bind(struct argv *argv, const char *source, const char *target)
{
	auto_buf struct buf line = BUF_INIT(16384);

	csv_add(&line, "type", "bind");
	csv_add(&line, "src", source);
	csv_add(&line, "dst", target);
	csv_add(&line, "readonly", "true");
	argv_option(argv, "--mount", "%s", buf_str(&line));
}

/* What folder.c has made for the container. */
static void
add_own(struct argv *argv, const struct docker_run *run, const char *name,
    const char *target)
{
	auto_buf struct buf path = BUF_INIT(8192);

	buf_addf(&path, "%s/%s/%s", run->cells, run->name, name);
	add_bind(argv, buf_str(&path), target);
}

/* An anonymous volume whose file system is on the device.  The label lets the
 * sweep find it should the engine die before it removed it. */
static void
add_volume(struct argv *argv, const struct docker_run *run, size_t i)
{
	auto_buf struct buf line = BUF_INIT(16384);
	auto_buf struct buf label = BUF_INIT(256);
	auto_buf struct buf device = BUF_INIT(256);

	buf_addf(&label, "inline.instance=%s", run->instance);
	buf_addf(&device, "device=/dev/loop%d", run->devices[i]);
	csv_add(&line, "type", "volume");
	csv_add(&line, "dst", run->class->mounts[i].target);
	csv_add(&line, "volume-nocopy", "true");
	csv_add(&line, "volume-label", buf_str(&label));
	csv_add(&line, "volume-opt", "type=ext4");
	csv_add(&line, "volume-opt", buf_str(&device));
	csv_add(&line, "volume-opt",
	    i == 0 && run->writable ? "o=nosuid,nodev,discard,noinit_itable" :
				      "o=ro,nosuid,nodev");
	argv_option(argv, "--mount", "%s", buf_str(&line));
}

/* What the cell may ask of the device in a second. */
static void
add_rates(struct argv *argv, const struct docker_run *run, int device)
{
	const struct {
		const char *option;
		int64_t rate;
	} rates[] = { { "--device-read-bps", run->config->disk_rate },
		{ "--device-write-bps", run->config->disk_rate },
		{ "--device-read-iops", run->config->disk_ops },
		{ "--device-write-iops", run->config->disk_ops } };

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		if (rates[i].rate != 0)
			argv_option(argv, rates[i].option,
			    "/dev/loop%d:%" PRId64, device, rates[i].rate);
	}
}

/* Who the container is, as whom it runs, and what it may reach. */
static void
add_identity(struct argv *argv, const struct docker_run *run)
{
	const struct config *config = run->config;
	const char *network = run->class->network ? config->pip_network :
						    "none";

	argv_option(argv, "--name", "%s", run->name);
	argv_option(argv, "--label", "inline.instance=%s", run->instance);
	argv_option(argv, "--label", "inline.class=%s", run->class->name);
	argv_option(argv, "--label", "inline.sandbox=%s", run->sandbox);
	if (*config->sandbox_runtime != '\0')
		argv_option(argv, "--runtime", "%s", config->sandbox_runtime);
	argv_option(argv, "--user", "%" PRIu32 ":%" PRIu32, run->uid, run->uid);
	argv_option(argv, "--network", "%s", network);
	if (strcmp(network, "none") == 0)
		argv_option(argv, "--dns-option", "timeout:0");
	argv_option(argv, "--security-opt", "seccomp=%s/%s", config->lib_dir,
	    run->class->seccomp);
	if (*run->apparmor != '\0')
		argv_option(argv, "--security-opt", "apparmor=%s",
		    run->apparmor);
}

/* A folder in memory; /tmp is everybody's, the others are the cell's user's. */
static void
add_folder(struct argv *argv, const struct class_folder *folder, uint32_t uid)
{
	auto_buf struct buf owner = BUF_INIT(128);
	int64_t pages = folder->size / 4096;
	int64_t inodes = pages > 1024 ? pages : 1024;

	if (strcmp(folder->path, "/dev/shm") == 0) {
		argv_option(argv, "--shm-size", "%" PRId64, folder->size);
		return;
	}
	if (strcmp(folder->path, "/tmp") == 0)
		buf_adds(&owner, "1777");
	else
		buf_addf(&owner, "0755,uid=%" PRIu32 ",gid=%" PRIu32, uid, uid);
	argv_option(argv, "--tmpfs",
	    "%s:rw,exec,nosuid,nodev,mode=%s,size=%" PRId64
	    ",nr_inodes=%" PRId64,
	    folder->path, buf_str(&owner), folder->size, inodes);
}

/* How much it may use of what. */
static void
add_limits(struct argv *argv, const struct docker_run *run)
{
	const struct config *config = run->config;
	int64_t memory = class_memory(run->class, config);
	int64_t file_max = class_file_max(run->class, config);
	struct class_folder folders[CLASS_FOLDERS];
	size_t count = class_folders(run->class, config, folders);

	argv_option(argv, "--memory", "%" PRId64, memory);
	argv_option(argv, "--memory-swap", "%" PRId64, memory);
	argv_option(argv, "--cpus", "%.2f", (double)config->milli_cpus / 1e3);
	argv_option(argv, "--pids-limit", "%" PRId64, config->pids);
	argv_option(argv, "--ulimit", "fsize=%" PRId64 ":%" PRId64, file_max,
	    file_max);
	for (size_t i = 0; i < count; i++)
		add_folder(argv, &folders[i], run->uid);
	if (!run->class->in_memory)
		argv_option(argv, "--tmpfs", "%s,uid=%" PRIu32 ",gid=%" PRIu32,
		    code_tmpfs, run->uid, run->uid);
	if (run->class->sysctl != NULL)
		argv_option(argv, "--sysctl", "%s", run->class->sysctl);
}

/* What the cell is told of how it holds its runs apart: one whose runs are to
 * have namespaces. */
static void
add_settings(struct argv *argv, const struct docker_run *run)
{
	const struct config *config = run->config;

	if (run->class->reuse != REUSE_ANYONE)
		return;
	if (strcmp(config->api_isolation, "cell") == 0)
		argv_option(argv, "--env", "IL_CELL_ISOLATION=1");
	if (*config->preload != '\0')
		argv_option(argv, "--env", "IL_CELL_PRELOAD=%s",
		    config->preload);
}

void
docker_argv_run(struct argv *argv, const struct docker_run *run)
{
	argv_init(argv, ARGV_WORDS(run->config->docker_binary, "run"));
	argv_add_all(argv, fixed_options);
	add_identity(argv, run);
	add_limits(argv, run);
	add_settings(argv, run);
	add_own(argv, run, "socket", "/run/inline");
	add_own(argv, run, "cell", "/run/cell");
	add_own(argv, run, "passwd", "/etc/passwd");
	add_own(argv, run, "group", "/etc/group");
	if (*class_ca_bundle(run->class, run->config) != '\0')
		add_bind(argv, run->config->pip_ca_bundle, "/run/ca.pem");
	for (size_t i = 0; run->class->mounts[i].volume != NULL; i++) {
		add_volume(argv, run, i);
		add_rates(argv, run, run->devices[i]);
	}
	argv_add_all(argv, ARGV_WORDS("--entrypoint", "python3", run->image));
	argv_add_all(argv, cell_command);
	if (run->class->argument != NULL)
		argv_add(argv, run->class->argument);
}

/* Root, to write where the image's owner may, and nothing else: no network, no
 * capability, nothing mounted; and behind all others on a processor. */
void
docker_argv_derive(struct argv *argv, const char *binary, const char *name,
    const char *instance, const char *image, const char *recipe)
{
	argv_init(argv,
	    ARGV_WORDS(binary, "run", "--pull", "never", "--init=false",
		"--no-healthcheck", "--network", "none", "--user", "0:0",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--ipc", "private", "--log-driver", "none", "--stop-signal",
		"SIGKILL", "--oom-score-adj", "900", "--memory", "512m",
		"--memory-swap", "512m", "--pids-limit", "64", "--cpus", "1",
		"--cpu-shares", "256", "--workdir", "/", "--label", DERIVED));
	argv_option(argv, "--label", "inline.instance=%s", instance);
	argv_add_all(argv,
	    ARGV_WORDS("--name", name, "--entrypoint", "python3", image, "-I",
		"-B", "-c", recipe));
}

#define CALL_WORDS 8
#define OURS "label=inline.instance="
static const struct {
	const char *words[CALL_WORDS];
	const char *before; /* the subject, in the same word; NULL: nothing */
} calls[] = {
	[DOCKER_REMOVE] = { { "rm", "--force", "--volumes" }, NULL },
	[DOCKER_WAIT] = { { "wait" }, NULL },
	[DOCKER_PROBE] = { { "image", "inspect", "--format", "{{.Id}}" },
	    NULL },
	[DOCKER_LABELS] = { { "image", "inspect", "--format",
				"{{.Id}} {{json .Config.Labels}}" },
	    NULL },
	[DOCKER_PULL] = { { "pull", "--quiet" }, NULL },
	[DOCKER_COMMIT] = { { "commit", "--change", "USER 65532:65532",
				"--change", "ENTRYPOINT []", "--change",
				"CMD [\"python3\"]" },
	    NULL },
	[DOCKER_CELLS] = { { "ps", "--all", "--quiet", "--no-trunc",
			       "--filter" },
	    OURS },
	[DOCKER_VOLUMES] = { { "volume", "ls", "--quiet", "--filter" }, OURS },
	[DOCKER_DERIVED] = { { "image", "ls", "--format",
				 "{{.Repository}}:{{.Tag}}", "--filter",
				 "label=" DERIVED, "--filter" },
	    OURS },
	[DOCKER_REMOVE_VOLUMES] = { { "volume", "rm", "--force" }, NULL },
	[DOCKER_REMOVE_IMAGES] = { { "image", "rm" }, NULL },
};

void
docker_argv(struct argv *argv, const char *binary, enum docker_call call,
    const char *subject)
{
	const char *before = calls[call].before;

	argv_init(argv, ARGV_WORDS(binary));
	argv_add_all(argv, calls[call].words);
	if (subject != NULL)
		argv_addf(argv, "%s%s", before != NULL ? before : "", subject);
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

/* The CLI says why in words only, so the words are looked for; none of them
 * comes from code that people run. */
enum docker_failure
docker_classify(const struct process_result *result)
{
	/* The first phrase that it says decides. */
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

/* Take the line of that length off the answer, of which it is a whole one. */
static bool
take_line(const char *text, size_t *pos, size_t len, char *line)
{
	const char *at = text + *pos;

	if (at[len] != '\n' && at[len] != '\0')
		return false;
	memcpy(line, at, len);
	line[len] = '\0';
	*pos += len + (at[len] == '\n' ? 1 : 0);
	return true;
}

bool
docker_next_id(const char *text, size_t *pos, char id[65])
{
	size_t len = strspn(text + *pos, "0123456789abcdef");

	return len >= 12 && len <= 64 && take_line(text, pos, len, id);
}

bool
docker_next_derived(const char *text, size_t *pos, char name[128])
{
	static const char prefix[] = "inline-derived:";
	const size_t prefix_len = sizeof(prefix) - 1;
	const char *line = text + *pos;
	size_t len;

	if (strncmp(line, prefix, prefix_len) != 0)
		return false;
	len = prefix_len + strspn(line + prefix_len, "0123456789abcdef-");
	return len < 128 && take_line(text, pos, len, name);
}
