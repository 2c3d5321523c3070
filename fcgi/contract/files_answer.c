#include "files_answer.h"

#include <inttypes.h>
#include <string.h>

#include "execute_answer.h"
#include "../pytext/pydump.h"

#include "../../sandbox/base/buf.h"

static void
add_members(struct buf *out, const char *id, const char *name, int64_t size)
{
	buf_addf(out, "{\"file_id\":\"%s\",\"filename\":", id);
	pydump_add_string(out, name, strlen(name), PYDUMP_UTF8);
	buf_addf(out, ",\"size_bytes\":%" PRId64, size);
}

void
files_answer_add_uploaded(struct buf *out, const char *id, const char *name,
    int64_t size)
{
	add_members(out, id, name, size);
	buf_addc(out, '}');
}

void
files_answer_add_entry(struct buf *out, const char *id, const char *name,
    int64_t size, int64_t uploaded_ms)
{
	add_members(out, id, name, size);
	buf_adds(out, ",\"upload_time\":");
	execute_add_time(out, uploaded_ms);
	buf_addc(out, '}');
}
