"""The page in a real browser: Debian's Chromium without a window. Screenshots are kept in out/screenshots.

Skipped, visibly, where Chromium or its driver is not installed; the check of accessibility also where axe-core is not
(``npm pack axe-core``, then LIKESET_AXE names the file axe.min.js).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import likeset as ls
from page_held import hold, release

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no Chromium with its driver here: apt install chromium chromium-driver"
)
SCREENSHOTS = Path(__file__).parent.parent / "out" / "screenshots"
TOKEN = "a-token-of-the-tests"
NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("browser") / "likeset.db"
    study = ls.Study(
        "Sign-up page", factors={"variant": ["A", "B"]}, outcome={"converted": ls.Bernoulli()}, control="A", store=path
    )
    study.tell([{"variant": "AB"[i % 2], "converted": int(i % 2 == 1 or i % 7 == 0)} for i in range(40)])
    ls.Study(NASTY, factors={"v": [NASTY, "b"]}, outcome={"y": ls.Poisson()}, store=path)
    environment = {**os.environ, "LIKESET_TOKEN": TOKEN, "PYTHONPATH": str(Path(ls.__file__).parent.parent)}
    command = [sys.executable, "-m", "likeset", "serve", str(path), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    line = next(line for line in process.stdout if line.startswith("Page:"))
    yield re.search(r"http://[^/]+", line).group()
    process.terminate()
    process.wait(20)
    process.stdout.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    profile = tmp_path_factory.mktemp("profile")
    for option in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--disable-dev-shm-usage", "--window-size=1100,1400", f"--user-data-dir={profile}",
    ):  # fmt: skip
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


def wait(browser, condition, seconds=60):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, seconds, poll_frequency=0.1, ignored_exceptions=(Exception,)).until(condition)


def see(browser, text, seconds=60):
    wait(browser, lambda b: text in b.find_element("css selector", "main").text, seconds)


def keep(browser, name):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    browser.save_screenshot(str(SCREENSHOTS / f"{name}.png"))


def emulate(browser, width=1100, height=1400, dark=False, scripts=True):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    still = {"name": "prefers-reduced-motion", "value": "reduce"}  # clicks do not wait for pages that glide
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme, still]})
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})


def press(browser, button):
    """Press a button; if the page has just refreshed itself, the new one."""
    wait(browser, lambda b: b.find_element("xpath", f"//button[text()='{button}']").click() or True)


def fill(browser, **values):
    for name, value in values.items():
        wait(browser, lambda b, name=name, value=value: _filled(b, name, value))


def _filled(browser, name, value):
    from selenium.webdriver.support.ui import Select

    field = browser.find_element("name", name.replace("_", "-"))
    if field.tag_name == "select":
        Select(field).select_by_visible_text(value)
    else:
        field.clear()
        field.send_keys(value)
    return True


def test_from_a_new_study_to_a_verdict(browser, address):
    emulate(browser)
    browser.get(f"{address}/enter?token={TOKEN}")
    browser.find_element("link text", "New study").click()
    shown = {name: browser.find_element("id", name).is_displayed() for name in ("setting", "range", "control")}
    assert shown == {"setting": False, "range": False, "control": True}  # what zeros and ones have no use for
    fill(
        browser,
        name="Buttons",
        factors="colour: grey, green",
        control="grey",
        outcome="clicks",
        family="counts (orders, defects)",
    )
    keep(browser, "new")
    browser.find_element("xpath", "//button[text()='Begin']").click()
    see(browser, "Answers after 0 rows")
    fill(browser, field_0="green", field_1="3")
    browser.find_element("xpath", "//button[text()='Tell']").click()
    see(browser, "Recorded 1 row")
    see(browser, "Answers after 1 row")
    browser.find_element("xpath", "//summary[contains(., 'as CSV')]").click()
    rows = "colour,clicks\n" + "grey,0\ngreen,4\ngrey,1\ngreen,3\n" * 10
    browser.find_element("id", "csv").send_keys(rows)
    browser.find_element("xpath", "//button[text()='Tell all of them']").click()
    see(browser, "green is better than grey")
    assert browser.find_elements("css selector", ".badge.better")


def test_a_campaign_from_the_form_to_a_recommendation(browser, address):
    from selenium.webdriver.common.keys import Keys

    emulate(browser)
    browser.get(f"{address}/enter?token={TOKEN}")
    browser.find_element("link text", "New study").click()
    fill(
        browser, name="Coupling", factors="heat: 20 to 90", outcome="yield", family="numbers with normal noise (sigma)",
        model="a smooth function: the page can choose the next setting", setting="3", range="0 to 100",
    )  # fmt: skip
    press(browser, "Begin")
    see(browser, "Nothing is pending")
    fill(browser, count="2")
    press(browser, "Ask")
    see(browser, "Asked for 2 settings")
    wait(browser, lambda b: b.find_element("id", "run-1-0").send_keys("61.5", Keys.TAB) or True)  # the keyboard alone
    assert browser.switch_to.active_element.text == "Tell run 1"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    see(browser, "Recorded 1 row")
    press(browser, "It failed")
    see(browser, "Nothing is pending")
    see(browser, "Recommended: heat =")
    fill(browser, count="1")
    press(browser, "Ask")
    see(browser, "Tell run 3")
    wait(browser, lambda b: b.find_elements("css selector", "img[src*='kind=band']"))
    keep(browser, "campaign")
    emulate(browser, 390, 1400, True)
    keep(browser, "campaign-phone-dark")
    sideways = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.execute_script(sideways) <= 0
    emulate(browser)


def test_the_page_refreshes_by_itself_and_shows_the_pictures(browser, address):
    emulate(browser)
    browser.get(f"{address}/study?name=Sign-up%20page")
    see(browser, "certain by row")
    pictures = wait(browser, lambda b: b.find_elements("css selector", "figure img"))
    wait(
        browser, lambda b: b.execute_script("return [...document.images].every(i => i.complete && i.naturalWidth > 0)")
    )
    assert len(pictures) >= 2
    keep(browser, "study")
    import urllib.request

    request = urllib.request.Request(
        f"{address}/api/study/tell?name=Sign-up%20page", data=b'[{"variant": "A", "converted": 0}]', method="POST",
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )  # fmt: skip
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200
    see(browser, "Answers after 41 rows")  # nobody has touched the page


def test_many_tabs_do_not_keep_each_other_waiting(browser, address):
    """Browsers open six connections to a server; pages that listen would hold them all."""
    emulate(browser)
    first = browser.current_window_handle
    browser.set_page_load_timeout(20)
    for _ in range(8):
        browser.switch_to.new_window("tab")
        browser.get(f"{address}/study?name=Sign-up%20page")
        see(browser, "Answers after", 20)
    for handle in browser.window_handles:
        if handle != first:
            browser.switch_to.window(handle)
            browser.close()
    browser.switch_to.window(first)
    browser.set_page_load_timeout(60)


@pytest.mark.parametrize(
    ("name", "width", "dark"), [("phone", 390, False), ("phone-dark", 390, True), ("dark", 1100, True)]
)
def test_phone_and_dark(browser, address, name, width, dark):
    emulate(browser, width, 1400, dark)
    for path, part in (("/", "home"), ("/study?name=Sign-up%20page", "study")):
        browser.get(address + path)
        wait(browser, lambda b: b.find_elements("css selector", "h1"))
        sideways = browser.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert sideways <= 0, f"{part} scrolls sideways"
        paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == dark
        keep(browser, f"{part}-{name}")
    emulate(browser)


def test_everything_can_be_done_with_the_keyboard(browser, address):
    from selenium.webdriver.common.keys import Keys

    emulate(browser)
    browser.get(f"{address}/enter?token={TOKEN}")
    browser.get(f"{address}/study?name=Sign-up%20page")
    see(browser, "Enter a result")
    body = browser.find_element("tag name", "body")
    body.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Skip to the contents"
    assert browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    for _ in range(60):
        if browser.switch_to.active_element.get_attribute("name") == "field-0":
            break
        browser.switch_to.active_element.send_keys(Keys.TAB)
    before = int(
        re.search(r"Answers after ([\d,]+)", browser.find_element("tag name", "main").text).group(1).replace(",", "")
    )
    browser.switch_to.active_element.send_keys("B")
    browser.switch_to.active_element.send_keys(Keys.TAB)
    browser.switch_to.active_element.send_keys("yes")
    browser.switch_to.active_element.send_keys(Keys.TAB)
    assert browser.switch_to.active_element.text == "Tell"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    see(browser, f"Answers after {before + 1:,} rows")


def test_everything_works_without_scripts(browser, address):
    emulate(browser, scripts=False)
    browser.get(f"{address}/enter?token={TOKEN}")
    browser.get(f"{address}/study?name=Sign-up%20page")
    see(browser, "Enter a result")
    fill(browser, field_0="A")
    browser.find_element("xpath", "//button[text()='Tell']").click()
    see(browser, "Recorded 1 row")
    emulate(browser)


# -- what takes long ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """A server whose tasks take as long as a test wants: its address and its store."""
    path = tmp_path_factory.mktemp("held") / "likeset.db"
    factors, outcome = {"heat": (20, 90)}, {"yield": ls.Gaussian(3.0)}
    study = ls.Study("Coupling", factors=factors, outcome=outcome, model="smooth", range=(0, 100), store=path)
    study.tell([{"heat": 30 + 5 * i, "yield": 40.0 + i} for i in range(4)])
    environment = {**os.environ, "PYTHONPATH": str(Path(ls.__file__).parent.parent)}
    command = [sys.executable, str(Path(__file__).parent / "page_held.py"), str(path), TOKEN]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    yield f"http://127.0.0.1:{int(process.stdout.readline())}", path
    process.terminate()
    process.wait(20)
    process.stdout.close()


def without_complaints(browser):
    """Nothing that the content security policy forbids was tried since the last look."""
    return not [e for e in browser.get_log("browser") if "Content Security Policy" in e["message"]]


@pytest.mark.parametrize("scripts", [True, False])
def test_a_slow_ask_shows_the_time_left_and_ends_on_its_runs(browser, held, scripts):
    address, store = held
    emulate(browser, scripts=scripts)
    browser.get(f"{address}/enter?token={TOKEN}")
    browser.get(f"{address}/study?name=Coupling")
    see(browser, "Next experiment")
    before = len(ls.Study.open("Coupling", store).runs())
    hold(store, "ask")
    fill(browser, count="2")
    press(browser, "Ask")
    see(browser, "Choosing what to run next")
    see(browser, "choosing 40 %")
    assert re.search(r"choosing 40 %, \d s left", browser.find_element("css selector", ".how-far").text)
    assert float(browser.find_element("css selector", "progress").get_attribute("value")) == 0.4
    if scripts:
        keep(browser, "waiting")
        emulate(browser, 390, 1400, True)
        keep(browser, "waiting-phone-dark")
        sideways = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.execute_script(sideways) <= 0
        emulate(browser)
    browser.refresh()  # asks for nothing more
    see(browser, "choosing 40 %")
    release(store, "ask")
    see(browser, "Asked for 2 settings")
    see(browser, f"Tell run {before + 2}")
    assert browser.current_url.endswith("/study?name=Coupling&asked=2#pending")
    assert len(ls.Study.open("Coupling", store).runs()) == before + 2 and without_complaints(browser)
    emulate(browser)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_slow_download_arrives(browser, held, scripts, tmp_path):
    address, store = held
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    emulate(browser, scripts=scripts)
    browser.get(f"{address}/study?name=Coupling")
    see(browser, "All rows (CSV)")
    hold(store, "data")
    wait(browser, lambda b: b.find_element("link text", "All rows (CSV)").click() or True)
    see(browser, "choosing 40 %")
    release(store, "data")
    see(browser, "The file is ready")
    rows = wait(browser, lambda b: (tmp_path / "Coupling.csv").read_text().splitlines())
    assert rows[0].startswith("heat,yield") and len(rows) == 1 + ls.Study.open("Coupling", store).n
    assert without_complaints(browser)
    browser.refresh()
    see(browser, "The file was fetched")
    emulate(browser)


def test_what_is_refused_after_a_while_says_why(browser, held):
    address, store = held
    emulate(browser)
    browser.get(f"{address}/enter?token={TOKEN}")
    browser.get(f"{address}/study?name=Coupling")
    see(browser, "Enter a result")
    hold(store, "tell")
    for place, text in (("field-0", "500"), ("field-1", "3")):  # by number: runs that are pending have such names, too
        wait(browser, lambda b, place=place, text=text: b.find_element("id", place).send_keys(text) or True)
    press(browser, "Tell")
    see(browser, "Recording rows")
    release(store, "tell")
    see(browser, "lies outside")
    assert wait(browser, lambda b: b.find_element("id", "field-0")).get_attribute("value") == "500"  # to be mended


def test_names_are_text_and_the_policy_is_kept(browser, address):
    emulate(browser)
    browser.get(address)
    see(browser, NASTY)
    browser.find_element("link text", NASTY).click()
    see(browser, "Answers after 0 rows")
    assert browser.execute_script("return document.querySelectorAll('main script').length") == 0
    complaints = [
        entry["message"] for entry in browser.get_log("browser") if "Content Security Policy" in entry["message"]
    ]
    assert complaints == []


AXE = Path(os.environ.get("LIKESET_AXE", Path(__file__).parent.parent / "out" / "axe.min.js"))


@pytest.mark.skipif(not AXE.is_file(), reason="no axe-core here: npm pack axe-core, and LIKESET_AXE=.../axe.min.js")
@pytest.mark.parametrize("dark", [False, True])
def test_accessibility(browser, address, dark):
    emulate(browser, dark=dark)
    browser.get(f"{address}/enter?token={TOKEN}")
    script = AXE.read_text(encoding="utf-8")
    for path in ("/", "/new", "/study?name=Sign-up%20page", "/study?name=Coupling", "/nowhere"):
        browser.get(address + path)
        wait(browser, lambda b: b.find_elements("css selector", "h1"))
        browser.execute_cdp_cmd("Runtime.evaluate", {"expression": script})
        found = browser.execute_async_script("axe.run().then(r => arguments[0](r.violations))")
        told = [(v["id"], v["impact"], [n["html"][:120] for n in v["nodes"][:3]]) for v in found]
        assert told == [], f"{path}: {told}"
    emulate(browser)
