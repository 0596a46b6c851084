// SPDX-License-Identifier: MIT
// enpu top: smi, live in the terminal.
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "commands.h"
#include "lib/failure.h"
#include "lib/monitor.h"
#include "lib/output.h"

namespace enpu::tools {
namespace {

struct Options {
    std::string device, root;
    double interval = 1;
    unsigned count = 0;
};

// The other screen of the terminal, keys without Enter; put back at the end.
class Screen {
  public:
    Screen() : on_(is_terminal() && isatty(STDIN_FILENO)) {
        if (!on_) return;
        tcgetattr(STDIN_FILENO, &before_);
        termios raw = before_;
        raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
        std::fputs("\033[?1049h\033[?25l", stdout);
    }
    ~Screen() {
        if (!on_) return;
        std::fputs("\033[?25h\033[?1049l", stdout);
        std::fflush(stdout);
        tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }
    void show(const std::string& text) const {
        if (on_) std::fputs("\033[H\033[J", stdout);
        std::fputs(text.c_str(), stdout);
        std::fflush(stdout);
    }
    // False when the user wants to leave.
    bool wait(unsigned milliseconds) const {
        if (!on_) return pause_ms(milliseconds);
        pollfd input = {STDIN_FILENO, POLLIN, 0};
        if (poll(&input, 1, static_cast<int>(milliseconds)) <= 0) return pause_ms(0);
        char key = 0;
        return read(STDIN_FILENO, &key, 1) == 1 && key != 'q' && key != 27;
    }

  private:
    bool on_;
    termios before_ = {};
};

int run(const Options& options) {
    catch_interrupts();
    Monitor monitor(options.root, options.device);
    monitor.read();
    const Screen screen;
    if (!screen.wait(200)) return kOk;
    for (unsigned round = 0; options.count == 0 || round < options.count; ++round) {
        if (round != 0 && !screen.wait(static_cast<unsigned>(options.interval * 1000))) break;
        std::string text = is_terminal() ? "enpu top: q leaves\n\n" : "";
        for (const auto& reading : monitor.read()) text += reading_text(monitor, reading) + "\n";
        screen.show(text);
    }
    return kOk;
}

}  // namespace

void add_top(CLI::App& app, int* status) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("top", "smi, live in the terminal");
    command->add_option("-d,--device", options->device, "/dev/accel/accelN; default: all");
    command->add_option("-i,--interval", options->interval, "seconds between looks")
        ->check(CLI::Range(0.05, 3600.0));
    command->add_option("-c,--count", options->count, "looks; 0: until q");
    command->add_option("--root", options->root, "look at /sys and /proc below this folder")
        ->group("");
    command->callback([options, status] { *status = run(*options); });
}

}  // namespace enpu::tools
