/* SPDX-License-Identifier: MIT */
/*
 * Needs of a run, by the last line of its traceback: a module that a package
 * brings, or input.  A program may print such a line itself.  All that follows
 * is a button that names the package.
 */
#include "worker/render/render_view.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* Modules whose package has another name; NULL: no package brings them. */
static const char *const packages[][2] = {
	{ "Crypto", "pycryptodome" },
	{ "Cryptodome", "pycryptodomex" },
	{ "Levenshtein", "Levenshtein" },
	{ "MySQLdb", "mysqlclient" },
	{ "OpenSSL", "pyOpenSSL" },
	{ "PIL", "pillow" },
	{ "attr", "attrs" },
	{ "bs4", "beautifulsoup4" },
	{ "cv2", "opencv-python-headless" },
	{ "dateutil", "python-dateutil" },
	{ "discord", "discord.py" },
	{ "distutils", "setuptools" },
	{ "docx", "python-docx" },
	{ "dotenv", "python-dotenv" },
	{ "fitz", "PyMuPDF" },
	{ "git", "GitPython" },
	{ "google", NULL },
	{ "idlelib", NULL },
	{ "jose", "python-jose" },
	{ "jwt", "PyJWT" },
	{ "magic", "python-magic" },
	{ "main", NULL },
	{ "mpl_toolkits", "matplotlib" },
	{ "msvcrt", NULL },
	{ "nacl", "PyNaCl" },
	{ "pip", NULL },
	{ "pkg_resources", "setuptools" },
	{ "pptx", "python-pptx" },
	{ "psycopg2", "psycopg2-binary" },
	{ "serial", "pyserial" },
	{ "skimage", "scikit-image" },
	{ "sklearn", "scikit-learn" },
	{ "slugify", "python-slugify" },
	{ "telegram", "python-telegram-bot" },
	{ "tkinter", NULL },
	{ "turtle", NULL },
	{ "turtledemo", NULL },
	{ "usb", "pyusb" },
	{ "win32api", NULL },
	{ "win32con", NULL },
	{ "win32gui", NULL },
	{ "winreg", NULL },
	{ "winsound", NULL },
	{ "yaml", "PyYAML" },
	{ "zmq", "pyzmq" },
};

/* The packages that people install most, to find a mistyped one.  The index has
 * too many names to ask it, and other users' packages are not ours to tell. */
static const char popular[] =
    "absl-py aiofiles aiohttp aiosqlite alembic altair annotated-types "
    "ansible anthropic anyio apscheduler argon2-cffi arrow asgiref "
    "astropy asyncpg attrs babel bcrypt beautifulsoup4 biopython black "
    "bokeh boto3 botocore bottle build cachetools cattrs celery certifi "
    "cffi chardet charset-normalizer click cloudpickle colorama "
    "coloredlogs configparser contourpy coverage cryptography cycler "
    "cython dash dask databases datasets decorator deepdiff diffusers "
    "dill discord-py django djangorestframework dnspython docker docopt "
    "docutils "
    "duckdb emoji ephem evaluate faker fastapi feedparser ffmpeg-python "
    "filelock flake8 flask flask-cors fonttools frozenlist fsspec "
    "fuzzywuzzy gensim geopandas geopy gevent gitpython gradio graphviz "
    "greenlet grpcio gunicorn h5py hikari httptools httpx "
    "huggingface-hub humanize hypothesis idna imageio importlib-metadata "
    "inflect ipython ipywidgets isort itsdangerous jax jieba jinja2 "
    "joblib jsonschema jupyter kafka-python keras kivy kiwisolver "
    "langchain lightgbm lxml mako markdown markupsafe marshmallow "
    "matplotlib matplotlib-inline mpmath msgpack multidict mypy "
    "mysql-connector-python narwhals nbformat networkx nextcord nltk "
    "numba numexpr numpy oauthlib openai opencv-python "
    "opencv-python-headless openpyxl orjson packaging pandas paramiko "
    "parso passlib pathspec pdfplumber peewee pendulum pexpect pillow "
    "pip platformdirs playwright plotly pluggy poetry polars pre-commit "
    "prettytable prometheus-client prompt-toolkit protobuf psutil "
    "psycopg psycopg2-binary py-cord pyarrow pyasn1 pycparser "
    "pycryptodome pydantic pydub pygame pygments pyinstaller pyjwt "
    "pylint pymongo pymysql pynacl pyopenssl pyparsing pypdf pypdf2 "
    "pyserial pytest pytest-asyncio python-dateutil python-docx "
    "python-dotenv python-multipart python-pptx python-telegram-bot pytz "
    "pyyaml pyzmq qrcode rapidfuzz redis regex reportlab requests "
    "requests-oauthlib rich ruff s3fs scapy scikit-image scikit-learn "
    "scipy scrapy seaborn selenium sentencepiece sentry-sdk setuptools "
    "shapely simplejson six sortedcontainers soupsieve spacy sphinx "
    "sqlalchemy starlette statsmodels streamlit sympy tabulate tenacity "
    "tensorflow termcolor textblob textual tiktoken tokenizers toml "
    "tomli toolz torch torchvision tornado tox tqdm transformers tweepy "
    "typer typing-extensions tzdata ujson urllib3 uvicorn uvloop "
    "virtualenv wasabi watchdog wcwidth websocket-client websockets "
    "werkzeug wheel wikipedia wordcloud wrapt xarray xgboost xlrd "
    "xlsxwriter xmltodict yarl yfinance youtube-dl yt-dlp zstandard";

static const char *const *
find_row(const char *module)
{
	for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++)
		if (strcmp(packages[i][0], module) == 0)
			return packages[i];
	return NULL;
}

/* As the index compares names. */
static char *
normal_name(const char *name)
{
	char *copy = xstrdup(name);

	for (char *c = copy; *c != '\0'; c++)
		*c = *c == '_' || *c == '.' ? '-' :
					      (char)tolower((unsigned char)*c);
	return copy;
}

struct nearest
render_need_nearest(const char *name)
{
	auto_free char *typed = normal_name(name);
	auto_free char *names = xstrdup(popular);
	const char *const *row = find_row(name);
	const char *package = row == NULL ? NULL : row[1];
	struct nearest near = { .count = 0 };
	char *next = names;
	char *one;

	/* the package of a module of that name comes first */
	if (package != NULL)
		nearest_add(&near, typed, typed, package);
	while ((one = strsep(&next, " ")) != NULL)
		if (strcmp(typed, one) != 0 &&
		    (package == NULL || strcmp(package, one) != 0))
			nearest_add(&near, typed, one, one);
	return near;
}

/* Find the package of a module, if a package may have its name.  Modules with
 * an underscore are the interpreter's own. */
static void
find_package(char package[PACKAGE_SIZE], const char *module)
{
	const char *const *row = find_row(module);

	if (module[0] == '_' || !requirement_is_valid(module))
		return;
	if (row == NULL)
		(void)snprintf(package, PACKAGE_SIZE, "%s", module);
	else if (row[1] != NULL)
		(void)snprintf(package, PACKAGE_SIZE, "%s", row[1]);
}

/* ModuleNotFoundError: No module named 'yaml.nodes' */
static void
parse_module(char package[PACKAGE_SIZE], const struct render_line *line)
{
	static const char begin[] = "ModuleNotFoundError: No module named '";
	const char *at = line->text + sizeof(begin) - 1;
	const char *end = line->text + line->len;
	char module[PACKAGE_SIZE];
	size_t len = 0;

	if (line->len < sizeof(begin) ||
	    memcmp(line->text, begin, sizeof(begin) - 1) != 0)
		return;
	while (at < end && len < sizeof(module) - 1 &&
	    (isalnum((unsigned char)*at) || *at == '_'))
		module[len++] = *at++;
	module[len] = '\0';
	if (len > 0 && at < end && (*at == '\'' || *at == '.'))
		find_package(package, module);
}

bool
render_lacks_input(const struct render_line *line)
{
	static const char eof[] = "EOFError: EOF when reading a line";

	return line->len == sizeof(eof) - 1 &&
	    memcmp(line->text, eof, line->len) == 0;
}

void
render_need(struct render_need *need, const struct run_outcome *outcome,
    const struct buf *output)
{
	const struct render_line line = render_last_line(output);

	*need = (struct render_need){ 0 };
	if (outcome->end != RUN_RESULT ||
	    outcome->result.reason != REASON_EXIT ||
	    outcome->result.status == 0)
		return;
	parse_module(need->package, &line);
	need->input = render_lacks_input(&line);
}

void
render_part_prompt(const struct run_outcome *outcome, struct buf *output)
{
	static const char head[] = "Traceback (most recent call last):\n";
	struct render_need need;
	const char *begin = buf_str(output);
	const char *at = begin;
	size_t before;

	/* code may have printed others, at the begin of a line */
	while ((at = memmem(at, output->len - (size_t)(at - begin), head,
		    strlen(head))) != NULL &&
	    (at == begin || at[-1] == '\n'))
		at += strlen(head);
	if (at == NULL)
		return;
	before = (size_t)(at - begin);
	render_need(&need, outcome, output);
	if (!need.input || buf_reserve(output, 1) == NULL)
		return;
	at = output->data + before; /* the data may have been moved */
	memmove(output->data + before + 1, at, output->len - before);
	output->data[before] = '\n';
	buf_commit(output, 1);
}
