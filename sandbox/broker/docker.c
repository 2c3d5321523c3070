#include "docker.h"

#include <inttypes.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/process.h"

#define DERIVED_LABEL "inline.derived=1"
#define DERIVED_FILTER "label=inline.derived=1"

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

/* folder: "" when source is a path of its own. */
static void
add_bind(struct argv *argv, const char *folder, const char *source,
    const char *target)
{
	auto_buf struct buf path = BUF_INIT(8192);
	auto_buf struct buf line = BUF_INIT(16384);

	buf_adds(&path, folder);
	buf_adds(&path, source);
	csv_add(&line, "type", "bind");
	csv_add(&line, "src", buf_str(&path));
	csv_add(&line, "dst", target);
	csv_add(&line, "readonly", "true");
	argv_add(argv, "--mount");
	argv_add(argv, buf_str(&line));
}

/* An anonymous volume whose file system is on the device.  The label lets the
 * sweep find it should the engine die before it removed it. */
static void
add_volume(struct argv *argv, const struct docker_mount *mount,
    const char *instance)
{
	auto_buf struct buf line = BUF_INIT(16384);
	auto_buf struct buf label = BUF_INIT(256);
	auto_buf struct buf device = BUF_INIT(256);

	buf_addf(&label, "inline.instance=%s", instance);
	buf_addf(&device, "device=%s", mount->device);
	csv_add(&line, "type", "volume");
	csv_add(&line, "dst", mount->target);
	csv_add(&line, "volume-nocopy", "true");
	csv_add(&line, "volume-label", buf_str(&label));
	csv_add(&line, "volume-opt", "type=ext4");
	csv_add(&line, "volume-opt", buf_str(&device));
	csv_add(&line, "volume-opt",
	    mount->read_only ? "o=ro,nosuid,nodev" :
			       "o=nosuid,nodev,discard,noinit_itable");
	argv_add(argv, "--mount");
	argv_add(argv, buf_str(&line));
}

static void
add_rate(struct argv *argv, const char *option, const char *device,
    int64_t rate)
{
	if (rate == 0)
		return;
	argv_add(argv, option);
	argv_addf(argv, "%s:%" PRId64, device, rate);
}

/* What the cell may ask of the device in a second. */
static void
add_rates(struct argv *argv, const struct docker_run *run, const char *device)
{
	add_rate(argv, "--device-read-bps", device, run->disk_rate);
	add_rate(argv, "--device-write-bps", device, run->disk_rate);
	add_rate(argv, "--device-read-iops", device, run->disk_ops);
	add_rate(argv, "--device-write-iops", device, run->disk_ops);
}

static void
add_identity(struct argv *argv, const struct docker_run *run)
{
	argv_add(argv, "--name");
	argv_add(argv, run->name);
	argv_add(argv, "--label");
	argv_addf(argv, "inline.instance=%s", run->instance);
	argv_add(argv, "--label");
	argv_addf(argv, "inline.class=%s", run->class);
	argv_add(argv, "--label");
	argv_addf(argv, "inline.sandbox=%s", run->sandbox);
	if (*run->runtime != '\0') {
		argv_add(argv, "--runtime");
		argv_add(argv, run->runtime);
	}
	argv_add(argv, "--user");
	argv_addf(argv, "%" PRIu32 ":%" PRIu32, run->uid, run->uid);
	argv_add(argv, "--network");
	argv_add(argv, run->network);
	if (strcmp(run->network, "none") == 0)
		argv_add_all(argv,
		    (const char *const[]){ "--dns-option", "timeout:0", NULL });
	argv_add(argv, "--security-opt");
	argv_addf(argv, "seccomp=%s", run->seccomp);
	if (*run->apparmor != '\0') {
		argv_add(argv, "--security-opt");
		argv_addf(argv, "apparmor=%s", run->apparmor);
	}
}

/* A folder in memory; /tmp is everybody's, the others are the cell's user's. */
static void
add_folder(struct argv *argv, const struct class_folder *folder, uint32_t uid)
{
	auto_buf struct buf owner = BUF_INIT(128);

	int64_t pages = folder->size / 4096;
	int64_t inodes = pages > 1024 ? pages : 1024;

	if (strcmp(folder->path, "/dev/shm") == 0) {
		argv_add(argv, "--shm-size");
		argv_addf(argv, "%" PRId64, folder->size);
		return;
	}
	if (strcmp(folder->path, "/tmp") == 0)
		buf_adds(&owner, "1777");
	else
		buf_addf(&owner, "0755,uid=%" PRIu32 ",gid=%" PRIu32, uid, uid);
	argv_add(argv, "--tmpfs");
	argv_addf(argv,
	    "%s:rw,exec,nosuid,nodev,mode=%s,size=%" PRId64
	    ",nr_inodes=%" PRId64,
	    folder->path, buf_str(&owner), folder->size, inodes);
}

static void
add_limits(struct argv *argv, const struct docker_run *run)
{
	argv_add(argv, "--memory");
	argv_addf(argv, "%" PRId64, run->memory);
	argv_add(argv, "--memory-swap");
	argv_addf(argv, "%" PRId64, run->memory);
	argv_add(argv, "--cpus");
	argv_addf(argv, "%.2f", run->cpus);
	argv_add(argv, "--pids-limit");
	argv_addf(argv, "%" PRId64, run->pids);
	argv_add(argv, "--ulimit");
	argv_addf(argv, "fsize=%" PRId64 ":%" PRId64, run->file_max,
	    run->file_max);
	for (size_t i = 0; i < run->folder_count; i++)
		add_folder(argv, &run->folders[i], run->uid);
	if (run->code) {
		argv_add(argv, "--tmpfs");
		argv_addf(argv, "%s,uid=%" PRIu32 ",gid=%" PRIu32, code_tmpfs,
		    run->uid, run->uid);
	}
	if (run->sysctl != NULL) {
		argv_add(argv, "--sysctl");
		argv_add(argv, run->sysctl);
	}
	if (run->isolation != NULL) {
		argv_add(argv, "--env");
		argv_addf(argv, "IL_CELL_ISOLATION=%s", run->isolation);
	}
	if (*run->preload != '\0') {
		argv_add(argv, "--env");
		argv_addf(argv, "IL_CELL_PRELOAD=%s", run->preload);
	}
}

void
docker_argv_run(struct argv *argv, const struct docker_run *run)
{
	argv_add(argv, run->binary);
	argv_add(argv, "run");
	argv_add_all(argv, fixed_options);
	add_identity(argv, run);
	add_limits(argv, run);
	add_bind(argv, run->folder, "/socket", "/run/inline");
	add_bind(argv, run->folder, "/cell", "/run/cell");
	add_bind(argv, run->folder, "/passwd", "/etc/passwd");
	add_bind(argv, run->folder, "/group", "/etc/group");
	if (*run->ca_bundle != '\0')
		add_bind(argv, "", run->ca_bundle, "/run/ca.pem");
	for (size_t i = 0; i < run->mount_count; i++) {
		add_volume(argv, &run->mounts[i], run->instance);
		add_rates(argv, run, run->mounts[i].device);
	}
	argv_add(argv, "--entrypoint");
	argv_add(argv, "python3");
	argv_add(argv, run->image);
	argv_add_all(argv, cell_command);
	if (run->argument != NULL)
		argv_add(argv, run->argument);
}

/* docker WORD... */
static void
add_words(struct argv *argv, const char *binary, const char *const *words)
{
	argv_add(argv, binary);
	argv_add_all(argv, words);
}

void
docker_argv_remove(struct argv *argv, const char *binary, const char *name)
{
	add_words(argv, binary,
	    (const char *const[]){ "rm", "--force", "--volumes", name, NULL });
}

void
docker_argv_wait(struct argv *argv, const char *binary, const char *name)
{
	add_words(argv, binary, (const char *const[]){ "wait", name, NULL });
}

void
docker_argv_probe(struct argv *argv, const char *binary, const char *image)
{
	add_words(argv, binary,
	    (const char *const[]){
		"image", "inspect", "--format", "{{.Id}}", image, NULL });
}

void
docker_argv_pull(struct argv *argv, const char *binary, const char *image)
{
	add_words(argv, binary,
	    (const char *const[]){ "pull", "--quiet", image, NULL });
}

void
docker_argv_labels(struct argv *argv, const char *binary, const char *image)
{
	add_words(argv, binary,
	    (const char *const[]){ "image", "inspect", "--format",
		"{{.Id}} {{json .Config.Labels}}", image, NULL });
}

/* Root, to write where the image's owner may, and nothing else: no network, no
 * capability, nothing mounted; and behind all others on a processor. */
void
docker_argv_derive(struct argv *argv, const char *binary, const char *name,
    const char *instance, const char *image, const char *recipe)
{
	add_words(argv, binary,
	    (const char *const[]){ "run", "--pull", "never", "--init=false",
		"--no-healthcheck", "--network", "none", "--user", "0:0",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--ipc", "private", "--log-driver", "none", "--stop-signal",
		"SIGKILL", "--oom-score-adj", "900", "--memory", "512m",
		"--memory-swap", "512m", "--pids-limit", "64", "--cpus", "1",
		"--cpu-shares", "256", "--workdir", "/", "--label",
		DERIVED_LABEL, "--label", NULL });
	argv_addf(argv, "inline.instance=%s", instance);
	argv_add_all(argv,
	    (const char *const[]){ "--name", name, "--entrypoint", "python3",
		image, "-I", "-B", "-c", recipe, NULL });
}

void
docker_argv_commit(struct argv *argv, const char *binary, const char *name,
    const char *image)
{
	add_words(argv, binary,
	    (const char *const[]){ "commit", "--change", "USER 65532:65532",
		"--change", "ENTRYPOINT []", "--change", "CMD [\"python3\"]",
		name, image, NULL });
}

void
docker_argv_list_derived(struct argv *argv, const char *binary,
    const char *instance)
{
	add_words(argv, binary,
	    (const char *const[]){ "image", "ls", "--format",
		"{{.Repository}}:{{.Tag}}", "--filter", DERIVED_FILTER,
		"--filter", NULL });
	argv_addf(argv, "label=inline.instance=%s", instance);
}

void
docker_argv_remove_images(struct argv *argv, const char *binary)
{
	add_words(argv, binary, (const char *const[]){ "image", "rm", NULL });
}

void
docker_argv_list(struct argv *argv, const char *binary, const char *instance)
{
	add_words(argv, binary,
	    (const char *const[]){
		"ps", "--all", "--quiet", "--no-trunc", "--filter", NULL });
	argv_addf(argv, "label=inline.instance=%s", instance);
}

void
docker_argv_list_volumes(struct argv *argv, const char *binary,
    const char *instance)
{
	add_words(argv, binary,
	    (const char *const[]){
		"volume", "ls", "--quiet", "--filter", NULL });
	argv_addf(argv, "label=inline.instance=%s", instance);
}

void
docker_argv_remove_volumes(struct argv *argv, const char *binary)
{
	add_words(argv, binary,
	    (const char *const[]){ "volume", "rm", "--force", NULL });
}

static bool
says_any(const char *text, const char *const *phrases)
{
	for (; *phrases != NULL; phrases++) {
		if (strcasestr(text, *phrases) != NULL)
			return true;
	}
	return false;
}

enum docker_failure
docker_classify(const struct process_result *result)
{
	static const char *const engine[] = { "Cannot connect to the Docker",
		"docker daemon running", "error during connect",
		"connection refused", "EOF", "context deadline exceeded",
		NULL };
	static const char *const image[] = { "No such image",
		"Unable to find image", NULL };
	static const char *const mount[] = { "mount local volume",
		"mounting volume", "structure needs cleaning", NULL };
	static const char *const absent[] = { "No such container", NULL };
	const char *text = buf_str(&result->err);

	if (result->outcome != PROCESS_EXITED)
		return DOCKER_ENGINE;
	if (says_any(text, absent))
		return DOCKER_ABSENT;
	if (says_any(text, image))
		return DOCKER_IMAGE;
	if (says_any(text, mount))
		return DOCKER_MOUNT;
	if (says_any(text, engine))
		return DOCKER_ENGINE;
	return DOCKER_OTHER;
}

bool
docker_next_id(const char *text, size_t *pos, char id[65])
{
	const char *line = text + *pos;
	size_t len = strspn(line, "0123456789abcdef");

	if (len < 12 || len > 64 || (line[len] != '\n' && line[len] != '\0'))
		return false;
	memcpy(id, line, len);
	id[len] = '\0';
	*pos += len + (line[len] == '\n' ? 1 : 0);
	return true;
}

bool
docker_next_derived(const char *text, size_t *pos, char name[128])
{
	static const char prefix[] = "inline-derived:";
	const char *line = text + *pos;
	size_t len = strcspn(line, "\n");

	if (len >= 128 || strncmp(line, prefix, sizeof(prefix) - 1) != 0 ||
	    sizeof(prefix) - 1 +
		    strspn(line + sizeof(prefix) - 1, "0123456789abcdef-") !=
		len)
		return false;
	memcpy(name, line, len);
	name[len] = '\0';
	*pos += len + (line[len] == '\n' ? 1 : 0);
	return true;
}
