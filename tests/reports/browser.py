"""Chromium without a window, over the pipe of its DevTools protocol: https://chromedevtools.github.io/devtools-protocol/"""

import base64
import json
import os
import shutil
import subprocess
import tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PATIENCE = 120  # seconds for all of it: only a browser that hangs takes as long


def find():
    """The program, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A tab. What it says, asks for and cannot do is in `messages` and `requests`."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="polyring-browser-", ignore_cleanup_errors=True)
        self.messages, self.requests, self.events, self.count, self.session = [], [], [], 0, None
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        words = [program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
                 "--disable-sync", "--hide-scrollbars", f"--user-data-dir={self.folder.name}", "about:blank"]
        # The protocol's pipes are 3 and 4, whatever the numbers of ours are: those of the shell's are free in it.
        command = ["bash", "-c", f'exec 3<&{theirs_in} 4>&{theirs_out} "$@"', "bash", "timeout", str(PATIENCE), *words]
        environment = {**os.environ, "HOME": self.folder.name, "DBUS_SESSION_BUS_ADDRESS": "disabled:"}
        self.process = subprocess.Popen(command, pass_fds=(theirs_in, theirs_out), env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.reader, self.writer = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self.rest = b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.reader.close()
        self.writer.close()
        self.folder.cleanup()

    def receive(self):
        while b"\0" not in self.rest:
            more = self.reader.read1(1 << 20)
            if not more:
                raise RuntimeError("the browser has gone")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(message)
        self.note(message)
        return message

    def note(self, message):
        method, said = message.get("method"), message.get("params", {})
        if method:
            self.events.append(method)
        if method == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])
        elif method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.messages.append(said)

    def call(self, method, **arguments):
        self.count += 1
        message = {"id": self.count, "method": method, "params": arguments}
        if self.session:
            message["sessionId"] = self.session
        self.writer.write(json.dumps(message).encode() + b"\0")
        self.writer.flush()
        while (answer := self.receive()).get("id") != self.count:
            pass
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def window(self, width, height=900, dark=False, media="", scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path):
        self.events.clear()
        failure = self.call("Page.navigate", url=path.resolve().as_uri()).get("errorText")
        if failure:
            raise RuntimeError(failure)
        while "Page.loadEventFired" not in self.events:
            self.receive()

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["exception"].get("description", "a script failed"))
        return result["result"].get("value")

    def screenshot(self, whole=False):
        """PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])
