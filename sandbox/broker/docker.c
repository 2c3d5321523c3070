/* SPDX-License-Identifier: MIT */
/*
 * The classes of cells, words of commands, and the command lines of docker.
 * The row of its class and the words of docker run say what a container may
 * see, reach and use.  All functions but docker_start…() are pure, and a test
 * reads the words.
 */
#include "broker/engine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/basics.h"
#include "broker/container.h"
#include "protocol/counters.h"

#define WORD_MAX 65536
#define LISTED_MAX 64

/* ---- classes of cells ---- */

#define API_TMP_MAX (INT64_C(64) << 20)
#define API_HOME_MAX (INT64_C(48) << 20)

/* No row has both the workspace and network: a user's code never runs where
 * there is network. */
static const struct cell_class classes[] = {
	{ .name = "user",
	    .mounts = { { WORKSPACE_VOLUME, "/workspace" },
		{ PACKAGES_VOLUME, "/workspace/.site-packages" } },
	    .reuse = REUSE_SANDBOX,
	    .concurrent_reads = true,
	    .has_sessions = true,
	    .seccomp = "seccomp.json" },
	{ .name = "pip",
	    .mounts = { { PACKAGES_VOLUME, "/site" } },
	    .network = true,
	    .seccomp = "seccomp.json" },
	/* pip installs and removes packages for the runs of the APIs. */
	{ .name = "install",
	    .program = PROGRAM_CTL,
	    .mounts = { { PACKAGES_VOLUME, "/site" } },
	    .installs = true,
	    .network = true,
	    .seccomp = "seccomp.json" },
	/* Removes packages; no user's code runs there. */
	{ .name = "packages",
	    .mounts = { { PACKAGES_VOLUME, "/site" } },
	    .seccomp = "seccomp.json" },
	/* The runs share the loopback device: the kernel may keep no connection
	 * of one run in TIME_WAIT for the next. */
	{ .name = "api",
	    .program = PROGRAM_API,
	    .in_memory = true,
	    .reuse = REUSE_ANYONE,
	    .budget = BUDGET_RUNS,
	    .argument = "api",
	    .seccomp = "seccomp-api.json",
	    .sysctl = "net.ipv4.tcp_max_tw_buckets=0" },
	{ .name = "session",
	    .program = PROGRAM_API,
	    .in_memory = true,
	    .budget = BUDGET_SESSIONS,
	    .lasting = true,
	    .argument = "session",
	    .seccomp = "seccomp.json" },
};

const struct cell_class class_mounter = { .name = "mounter",
	.program = PROGRAMS,
	.mounts_for_another = true,
	.seccomp = "seccomp-mounter.json" };

#define CLASSES (sizeof(classes) / sizeof(classes[0]))
static_assert(CLASSES == COUNTED_CLASSES, "counters.def has each of them");

const struct cell_class *
class_at(size_t i)
{
	return i < CLASSES ? &classes[i] : NULL;
}

size_t
class_index(const struct cell_class *class)
{
	return (size_t)(class - classes);
}

const struct cell_class *
class_find(const char *name)
{
	for (size_t i = 0; i < CLASSES; i++) {
		if (strcmp(classes[i].name, name) == 0)
			return &classes[i];
	}
	return NULL;
}

const char *
class_volume(const struct cell_class *class, size_t i, const char *packages)
{
	const char *volume = class->mounts[i].volume;

	return volume != NULL && strcmp(volume, PACKAGES_VOLUME) == 0 ?
	    packages :
	    volume;
}

int64_t
class_budget(enum cell_budget budget, const struct config *config)
{
	const int64_t budgets[BUDGETS] = {
		[BUDGET_SANDBOXES] = config->cells,
		[BUDGET_RUNS] = config->api_cells,
		[BUDGET_SESSIONS] = config->api_sessions,
	};

	assert(budget < BUDGETS);
	return budgets[budget];
}

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The sizes are those of the contracts where memory allows.  A run of either
 * contract may fill /home and /dev/shm, or /workspace, /tmp and /dev/shm; an
 * eighth of the memory stays for the processes (tests/unit/test_docker_argv.c).
 */
size_t
class_folders(const struct cell_class *class, const struct config *config,
    struct class_folder *folders)
{
	int64_t memory = config->api_memory;
	int64_t room = memory - memory / 8;
	int64_t home = least(API_HOME_MAX, room - memory / 16);
	int64_t shm = least(config->api_shm, least(memory / 4, room - home));
	int64_t tmp = least(API_TMP_MAX, memory / 4);

	folders[0] = (struct class_folder){ "/tmp",
		class->in_memory ? tmp : config->tmp_size };
	folders[1] = (struct class_folder){ "/dev/shm",
		class->in_memory ? shm : config->tmp_size };
	folders[2] = (struct class_folder){ "/workspace", room - tmp - shm };
	folders[3] = (struct class_folder){ "/home", home };
	if (!class->in_memory)
		return 2;
	return class->reuse == REUSE_ANYONE ? 4 : 3;
}

bool
class_has_folder(const struct cell_class *class, const struct config *config,
    const char *path)
{
	struct class_folder folders[CLASS_FOLDERS];
	size_t count = class_folders(class, config, folders);

	for (size_t i = 0; i < count; i++) {
		if (strcmp(folders[i].path, path) == 0)
			return true;
	}
	return false;
}

bool
api_packages_target(const char *interpreter,
    char target[API_PACKAGES_TARGET_MAX])
{
	char minor[IMAGES_NAME_MAX + 1];
	int len = 0;

	*target = '\0';
	images_minor(interpreter, minor);
	(void)sscanf(minor, "%*[0-9].%*[0-9]%n", &len);
	if (len == 0 || minor[len] != '\0')
		return false;
	(void)snprintf(target, API_PACKAGES_TARGET_MAX,
	    "/snekbox/user_base/lib/python%s/site-packages", minor);
	return true;
}

/* ---- words of a command ---- */

void
argv_addf(struct argv *argv, const char *fmt, ...)
{
	auto_buf struct buf word = BUF_INIT(WORD_MAX);
	va_list ap;

	va_start(ap, fmt);
	buf_addv(&word, fmt, ap);
	va_end(ap);
	if (word.overflow || argv->count == ARGV_MAX)
		log_fatal(1, "more than %d words, or than %d bytes", ARGV_MAX,
		    WORD_MAX);
	argv->words[argv->count++] = buf_steal(&word, NULL);
	argv->words[argv->count] = NULL;
}

/* Add several words, up to a NULL. */
static void
argv_add_all(struct argv *argv, const char *const *words)
{
	for (; *words != NULL; words++)
		argv_addf(argv, "%s", *words);
}

void
argv_init(struct argv *argv, const char *const *words)
{
	*argv = (struct argv){ .count = 0 };
	argv_add_all(argv, words);
}

void
argv_release(struct argv *argv)
{
	for (size_t i = 0; i < argv->count; i++)
		free(argv->words[i]);
	*argv = (struct argv){ .count = 0 };
}

/* ---- docker run ---- */

/* Options of every container.  DECISIONS.md explains each. */
static const char *const fixed_options[] = { "--detach", "--rm", "--pull",
	"never", "--init=false", "--no-healthcheck", "--read-only",
	"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--ipc",
	"private", "--log-driver", "none", "--stop-signal", "SIGKILL",
	"--oom-score-adj", "500", "--hostname", "inline", "--workdir", "/",
	"--env", "LANG=C.UTF-8", "--env", "LD_BIND_NOW=1", "--ulimit", "core=0",
	"--ulimit", "nofile=1024:1024", "--ulimit", "msgqueue=0:0", NULL };

/* After the image: sandbox/cell/DECISIONS.md says why these flags. */
static const char *const cell_command[] = { "-s", "-u", "-B",
	"/run/cell/cell.py", "/run/inline/cell.sock", NULL };

/* The cell writes the source of a run there; the run may read it. */
static const char code_tmpfs[] =
    "/code:rw,noexec,nosuid,nodev,size=20m,nr_inodes=16,mode=0755";

/* The cell links names of its interpreter there once. */
static const char names_tmpfs[] =
    "/snekbin:rw,noexec,nosuid,nodev,size=64k,nr_inodes=32,mode=0755";
/* Packages for runs of the APIs are mounted below it (api_packages.c). */
static const char user_tmpfs[] =
    "/snekbox:ro,noexec,nosuid,nodev,size=4k,nr_inodes=16,mode=0755";
/* An API's cell links its workspace there: /mnt/data. */
static const char data_tmpfs[] =
    "/mnt:rw,noexec,nosuid,nodev,size=4k,nr_inodes=2,mode=0755";

/* A --mount is a line of CSV: the source is quoted, since it may hold a
 * separator. */
static void
add_bind(struct argv *argv, const char *source, const char *target)
{
	auto_buf struct buf quoted = BUF_INIT(16384);

	for (; *source != '\0'; source++) {
		if (*source == '"')
			buf_addc(&quoted, '"');
		buf_addc(&quoted, *source);
	}
	argv_addf(argv, "--mount=type=bind,\"src=%s\",dst=%s,readonly=true",
	    buf_str(&quoted), target);
}

/* Mount an entry of the container's own folder (workspace.c). */
static void
docker_add_entry(struct argv *argv, const struct host *host,
    const char *container, const char *name, const char *target)
{
	auto_free char *path = xprintf("%s/%s/%s", host->cells_dir, container,
	    name);

	add_bind(argv, path, target);
}

/* Add an anonymous volume whose file system is on the device.  By the label the
 * sweep finds it when the engine died before it removed it. */
static void
add_device(struct argv *argv, const struct container *c, int number,
    const char *target, bool writable)
{
	argv_addf(argv,
	    "--mount=type=volume,dst=%s,volume-nocopy=true,"
	    "volume-label=inline.instance=%s,volume-opt=type=ext4,"
	    "volume-opt=device=/dev/loop%d,\"volume-opt=o=%s\"",
	    target, c->host->instance, number,
	    writable ? "nosuid,nodev,discard,noinit_itable" :
		       "ro,nosuid,nodev");
}

/* Limit the cell's throughput on the device. */
static void
add_rates(struct argv *argv, const struct container *c, int device)
{
	const struct {
		const char *option;
		int64_t rate;
	} rates[] = { { "--device-read-bps", c->host->config->disk_rate },
		{ "--device-write-bps", c->host->config->disk_rate },
		{ "--device-read-iops", c->host->config->disk_ops },
		{ "--device-write-iops", c->host->config->disk_ops } };

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		if (rates[i].rate != 0)
			argv_addf(argv, "%s=/dev/loop%d:%" PRId64,
			    rates[i].option, device, rates[i].rate);
	}
}

/* Mount the volumes.  A missing one is an empty folder, for reading.  A standby
 * cell has an empty folder where a volume will be mounted; no user of the cell
 * owns it. */
static void
add_volumes(struct argv *argv, const struct container *c)
{
	const struct class_mount *mount = c->class->mounts;

	for (size_t i = 0; mount[i].volume != NULL; i++) {
		int device = c->volumes[i].device;

		if (c->standby)
			argv_addf(argv,
			    "--tmpfs=%s:rw,noexec,nosuid,nodev,size=4k,"
			    "nr_inodes=4,mode=0755",
			    mount[i].target);
		else if (device < 0)
			argv_addf(argv,
			    "--tmpfs=%s:ro,nosuid,nodev,size=4k,mode=0755,"
			    "uid=%" PRIu32 ",gid=%" PRIu32,
			    mount[i].target, c->uid, c->uid);
		else
			add_device(argv, c, device, mount[i].target,
			    i == 0 && c->writable);
		if (device >= 0)
			add_rates(argv, c, device);
	}
}

/* All cells of a version mount the same packages, for reading. */
static void
add_api_packages(struct argv *argv, const struct container *c)
{
	char target[API_PACKAGES_TARGET_MAX];

	if (c->api_packages.device >= 0 &&
	    api_packages_target(c->interpreter.name, target))
		add_device(argv, c, c->api_packages.device, target, false);
}

/* Sandbox, user, network and confinement of a cell. */
static void
add_identity(struct argv *argv, const struct container *c, const char *apparmor)
{
	const struct config *config = c->host->config;
	const char *network = c->class->network ? config->pip_network : "none";

	argv_addf(argv, "--label=inline.sandbox=%s", c->sandbox);
	if (*config->sandbox_runtime != '\0')
		argv_addf(argv, "--runtime=%s", config->sandbox_runtime);
	argv_addf(argv, "--user=%" PRIu32 ":%" PRIu32, c->uid, c->uid);
	argv_addf(argv, "--network=%s", network);
	if (strcmp(network, "none") == 0)
		argv_addf(argv, "--dns-option=timeout:0");
	/* jail.py hides the same paths as the engine's masks, beneath which the
	 * kernel would let nobody mount a /proc. */
	if (c->class->reuse == REUSE_ANYONE && !c->masked)
		argv_addf(argv, "--security-opt=systempaths=unconfined");
	if (*apparmor != '\0')
		argv_addf(argv, "--security-opt=apparmor=%s", apparmor);
}

/* Add a folder in memory.  All users may write to /tmp, where the APIs'
 * contract forbids to execute files; the other folders are the cell's user's.
 */
static void
add_folder(struct argv *argv, const struct cell_class *class,
    const struct class_folder *folder, uint32_t uid)
{
	bool is_tmp = strcmp(folder->path, "/tmp") == 0;
	auto_free char *owner = is_tmp ?
	    xstrdup("1777") :
	    xprintf("0755,uid=%" PRIu32 ",gid=%" PRIu32, uid, uid);
	int64_t pages = folder->size / 4096;
	int64_t inodes = pages > 1024 ? pages : 1024;

	if (strcmp(folder->path, "/dev/shm") == 0) {
		argv_addf(argv, "--shm-size=%" PRId64, folder->size);
		return;
	}
	argv_addf(argv,
	    "--tmpfs=%s:rw,%s,nosuid,nodev,mode=%s,size=%" PRId64
	    ",nr_inodes=%" PRId64,
	    folder->path, is_tmp && class->in_memory ? "noexec" : "exec", owner,
	    folder->size, inodes);
}

/* Add a tmpfs that the cell's user owns. */
static void
add_tmpfs(struct argv *argv, const char *tmpfs, uint32_t uid)
{
	argv_addf(argv, "--tmpfs=%s,uid=%" PRIu32 ",gid=%" PRIu32, tmpfs, uid,
	    uid);
}

static int64_t
memory_of(const struct cell_class *class, const struct config *config)
{
	if (class->in_memory)
		return config->api_memory;
	return class->network ? config->pip_memory : config->memory;
}

/* The limit of a file's size is one for the whole container: its largest
 * volume.  Files in memory are limited by their folder's size, and by memory.
 */
static int64_t
file_max_of(const struct cell_class *class, const struct config *config)
{
	if (class->in_memory)
		return -1;
	if (class->installs)
		return config->api_packages_quota;
	return class->network || config->pip_quota > config->quota ?
	    config->pip_quota :
	    config->quota;
}

/* Limits of memory, processors, processes and files, and the folders in memory.
 */
static void
add_limits(struct argv *argv, const struct container *c)
{
	const struct config *config = c->host->config;
	int64_t memory = memory_of(c->class, config);
	int64_t file_max = file_max_of(c->class, config);
	struct class_folder folders[CLASS_FOLDERS];
	size_t count = class_folders(c->class, config, folders);

	argv_addf(argv, "--memory=%" PRId64, memory);
	argv_addf(argv, "--memory-swap=%" PRId64, memory);
	argv_addf(argv, "--cpus=%.2f", (double)config->milli_cpus / 1e3);
	argv_addf(argv, "--pids-limit=%" PRId64, config->pids);
	/* explicit, since the engine may have a default limit */
	argv_addf(argv, "--ulimit=fsize=%" PRId64 ":%" PRId64, file_max,
	    file_max);
	for (size_t i = 0; i < count; i++)
		add_folder(argv, c->class, &folders[i], c->uid);
	if (!c->class->in_memory)
		add_tmpfs(argv, code_tmpfs, c->uid);
	else
		add_tmpfs(argv, data_tmpfs, c->uid);
	if (c->class->reuse == REUSE_ANYONE) {
		add_tmpfs(argv, names_tmpfs, c->uid);
		add_tmpfs(argv, user_tmpfs, c->uid);
	}
	if (c->class->sysctl != NULL)
		argv_addf(argv, "--sysctl=%s", c->class->sysctl);
}

/* Settings of a cell whose runs shall have namespaces of their own. */
static void
add_settings(struct argv *argv, const struct container *c)
{
	const struct config *config = c->host->config;
	char names[PRELOAD_NAMES_MAX];

	if (c->class->reuse != REUSE_ANYONE)
		return;
	if (strcmp(config->api_isolation, "cell") == 0)
		argv_addf(argv, "--env=IL_CELL_ISOLATION=1");
	if (c->imports == 0)
		return;
	if (preload_is_auto(config->preload))
		preload_auto_names(c->imports, names);
	argv_addf(argv, "--env=IL_CELL_PRELOAD=%s",
	    preload_is_auto(config->preload) ? names : config->preload);
	argv_addf(argv, "--env=IL_CELL_PRELOAD_MEMORY=%" PRId64,
	    config->api_memory / 2);
}

/*
 * The mounter is root with the rights that its calls need: to mount, and to
 * enter the mounts of a cell, whose user is another; to write the map of a user
 * namespace; to find the folder for the packages in a workspace that its user
 * has closed.  No user's code runs in it, and it reads no byte but the
 * broker's.  It may open the cell's devices and make the system calls of its
 * own list.
 */
static void
add_mounter(struct argv *argv, const struct container *c, const char *image)
{
	const struct container *cell = c->cell;

	for (size_t i = 0; cell->class->mounts[i].volume != NULL; i++)
		argv_addf(argv, "--device-cgroup-rule=b 7:%d rw",
		    cell->volumes[i].device);
	argv_add_all(argv,
	    ARGV_WORDS("--cap-add=SYS_ADMIN", "--cap-add=SYS_CHROOT",
		"--cap-add=SYS_PTRACE", "--cap-add=SETUID", "--cap-add=SETGID",
		"--cap-add=DAC_READ_SEARCH",
		"--security-opt=apparmor=unconfined", "--user=0:0",
		"--network=none", "--memory=64m", "--memory-swap=64m",
		"--pids-limit=8"));
	docker_add_entry(argv, c->host, c->name, "socket", "/run/inline");
	argv_add_all(argv, ARGV_WORDS("--entrypoint", "/mounter", image));
}

void
docker_run_argv(struct argv *argv, const struct container *c, const char *image,
    const char *apparmor)
{
	argv_init(argv, ARGV_WORDS(c->host->config->docker_binary, "run"));
	argv_add_all(argv, fixed_options);
	argv_addf(argv, "--name=%s", c->name);
	argv_addf(argv, "--label=inline.instance=%s", c->host->instance);
	argv_addf(argv, "--label=inline.class=%s", c->class->name);
	argv_addf(argv, "--security-opt=seccomp=%s/%s",
	    c->host->config->lib_dir, c->class->seccomp);
	if (c->class->mounts_for_another) {
		add_mounter(argv, c, image);
		return;
	}
	add_identity(argv, c, apparmor);
	add_limits(argv, c);
	add_settings(argv, c);
	docker_add_entry(argv, c->host, c->name, "socket", "/run/inline");
	docker_add_entry(argv, c->host, c->name, "cell", "/run/cell");
	docker_add_entry(argv, c->host, c->name, "passwd", "/etc/passwd");
	docker_add_entry(argv, c->host, c->name, "group", "/etc/group");
	if (c->class->network && *c->host->config->pip_ca_bundle != '\0')
		add_bind(argv, c->host->config->pip_ca_bundle, "/run/ca.pem");
	add_volumes(argv, c);
	add_api_packages(argv, c);
	argv_add_all(argv, ARGV_WORDS("--entrypoint", "python3", image));
	argv_add_all(argv, cell_command);
	if (c->class->argument != NULL)
		argv_addf(argv, "%s", c->class->argument);
}

/* ---- the other calls ---- */

#define DERIVED "inline.derived=1"
#define HEX "0123456789abcdef"

/* The recipe runs as root, to write where the image's owner may, and has
 * nothing else: no network, no capability, no mount, and the lowest share of
 * the processors. */
void
docker_argv_derive(struct argv *argv, const char *binary, const char *name,
    const char *instance, const char *image, const char *recipe)
{
	auto_free char *ours = xprintf("--label=inline.instance=%s", instance);

	argv_init(argv,
	    ARGV_WORDS(binary, "run", "--pull", "never", "--init=false",
		"--no-healthcheck", "--network", "none", "--user", "0:0",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--ipc", "private", "--log-driver", "none", "--stop-signal",
		"SIGKILL", "--oom-score-adj", "900", "--memory", "512m",
		"--memory-swap", "512m", "--pids-limit", "64", "--cpus", "1",
		"--cpu-shares", "256", "--workdir", "/", "--label=" DERIVED,
		ours, "--name", name, "--entrypoint", "python3", image, "-I",
		"-B", "-c", recipe));
}

/* The image is swept like a derived one. */
void
docker_argv_import(struct argv *argv, const char *binary, const char *instance,
    const char *archive, const char *image)
{
	argv_init(argv, ARGV_WORDS(binary, "import"));
	argv_addf(argv, "--change=LABEL " DERIVED);
	argv_addf(argv, "--change=LABEL inline.instance=%s", instance);
	argv_add_all(argv, ARGV_WORDS(archive, image));
}

#define CALL_WORDS 8
#define OURS "label=inline.instance="
#define ALL 20 /* of a start */
#define PART 3
static const char label_derived[] = "label=" DERIVED;
/* The deadline of a call is so many twentieths of IL_TUNE_START_SECONDS, and at
 * least so long. */
static const struct {
	int least_ms;
	int twentieths;
	const char *before; /* the subject, in the same word */
	const char *words[CALL_WORDS];
} calls[] = {
	[DOCKER_REMOVE] = { 20000, ALL, "", { "rm", "--force", "--volumes" } },
	[DOCKER_WAIT] = { 0, ALL, "", { "wait" } },
	[DOCKER_PROBE] = { 3000, PART, "",
	    { "image", "inspect", "--format", "{{.Id}}" } },
	[DOCKER_LABELS] = { 5000, PART, "",
	    { "image", "inspect", "--format",
		"{{.Id}} {{json .Config.Labels}}" } },
	[DOCKER_PULL] = { 30 * 60 * 1000, 0, "", { "pull", "--quiet" } },
	[DOCKER_REMOVE_DERIVING] = { 5 * 60 * 1000, 0, "",
	    { "rm", "--force", "--volumes" } },
	[DOCKER_COMMIT] = { 5 * 60 * 1000, 0, "",
	    { "commit", "--change", "USER 65532:65532", "--change",
		"ENTRYPOINT []", "--change", "CMD [\"python3\"]" } },
	[DOCKER_CELLS] = { 3000, PART, OURS,
	    { "ps", "--all", "--quiet", "--no-trunc", "--filter" } },
	[DOCKER_VOLUMES] = { 3000, PART, OURS,
	    { "volume", "ls", "--quiet", "--filter" } },
	[DOCKER_DERIVED] = { 5000, PART, OURS,
	    { "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "--filter",
		label_derived, "--filter" } },
	[DOCKER_REMOVE_VOLUMES] = { 20000, ALL, "",
	    { "volume", "rm", "--force" } },
	[DOCKER_REMOVE_IMAGES] = { 5 * 60 * 1000, 0, "", { "image", "rm" } },
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
docker_start_argv(struct subprocess *process, const struct host *host,
    enum docker_call call, const struct argv *argv, subprocess_fn done,
    void *arg)
{
	int64_t ms = host->config->start_ms * calls[call].twentieths / 20;

	if (ms < calls[call].least_ms)
		ms = calls[call].least_ms;
	subprocess_start(process, host->loop, argv, (int)ms, done, arg);
}

void
docker_start(struct subprocess *process, const struct host *host,
    enum docker_call call, const char *subject, subprocess_fn done, void *arg)
{
	auto_argv struct argv argv;

	docker_argv(&argv, host->config->docker_binary, call, subject);
	docker_start_argv(process, host, call, &argv, done, arg);
}

size_t
docker_start_listed(struct subprocess *process, const struct host *host,
    enum docker_call call, const char *list,
    bool (*stays)(const void *arg, const char *name), subprocess_fn done,
    void *arg)
{
	auto_argv struct argv argv;
	char name[128];
	size_t pos = 0;
	size_t n = 0;

	docker_argv(&argv, host->config->docker_binary, call, NULL);
	while (n < LISTED_MAX &&
	    docker_next(list, &pos, call == DOCKER_REMOVE_IMAGES, name)) {
		if (stays != NULL && stays(arg, name))
			continue;
		argv_addf(&argv, "%s", name);
		n++;
	}
	if (n > 0)
		docker_start_argv(process, host, call, &argv, done, arg);
	return n;
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
