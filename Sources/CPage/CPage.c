// CPage.c -- the files of Page/, and Chart.js as the machine that builds has it (docs/dashboard.md).

#include "CPage.h"

// Of C23; the compiler has it in every mode and says so.
#pragma clang diagnostic ignored "-Wc23-extensions"

#ifndef CHART_JS
#define CHART_JS "/usr/share/javascript/chart.js/chart.min.js"
#endif

#if !__has_embed(CHART_JS)
#error "no Chart.js: install libjs-chart.js, or name the file of version 3.9 with CHART_JS=/path/chart.min.js"
#endif

static const unsigned char index_html[] = {
#embed "Page/index.html"
};
static const unsigned char app_js[] = {
#embed "Page/app.js"
};
static const unsigned char dom_js[] = {
#embed "Page/dom.js"
};
static const unsigned char figures_js[] = {
#embed "Page/figures.js"
};
static const unsigned char names_js[] = {
#embed "Page/names.js"
};
static const unsigned char panels_js[] = {
#embed "Page/panels.js"
};
static const unsigned char plots_js[] = {
#embed "Page/plots.js"
};
static const unsigned char rows_js[] = {
#embed "Page/rows.js"
};
static const unsigned char session_js[] = {
#embed "Page/session.js"
};
static const unsigned char stream_js[] = {
#embed "Page/stream.js"
};
static const unsigned char words_js[] = {
#embed "Page/words.js"
};
static const unsigned char app_css[] = {
#embed "Page/app.css"
};
static const unsigned char icon_svg[] = {
#embed "Page/icon.svg"
};
static const unsigned char chart_js[] = {
#if __has_embed(CHART_JS)
#embed CHART_JS
#else
  0
#endif
};

#define FILE(name, type, octets) {name, type, octets, sizeof(octets)}
#define SCRIPT "text/javascript; charset=utf-8"

static const page_file files[] = {
  FILE("index.html", "text/html; charset=utf-8", index_html),
  FILE("app.js", SCRIPT, app_js),
  FILE("dom.js", SCRIPT, dom_js),
  FILE("figures.js", SCRIPT, figures_js),
  FILE("names.js", SCRIPT, names_js),
  FILE("panels.js", SCRIPT, panels_js),
  FILE("plots.js", SCRIPT, plots_js),
  FILE("rows.js", SCRIPT, rows_js),
  FILE("session.js", SCRIPT, session_js),
  FILE("stream.js", SCRIPT, stream_js),
  FILE("words.js", SCRIPT, words_js),
  FILE("chart.js", SCRIPT, chart_js),
  FILE("app.css", "text/css; charset=utf-8", app_css),
  FILE("icon.svg", "image/svg+xml", icon_svg),
};

const size_t page_file_count = sizeof(files) / sizeof(files[0]);

page_file page_file_at(size_t index) { return files[index]; }
