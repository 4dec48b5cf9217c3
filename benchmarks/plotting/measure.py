# ruff: noqa: E501
"""Compares plotting libraries on the report's timeline: file size, time to the first picture, time a zoom step.

    python benchmarks/plotting/measure.py NODE_PACKAGES OUT

NODE_PACKAGES is a folder into which `npm pack uplot vega vega-lite vega-embed` was unpacked, one folder a package as
`NAME-VERSION/package`; Bokeh and Plotly come from PyPI. Each library draws the same 200,000 bars in 20 lanes; no level
of detail helps it. Needs chromium, chromedriver and selenium. Figures go to standard output, pages to OUT.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
from selenium import webdriver

EVENTS, LANES, STEPS = 200_000, 20, 12
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")

rng = np.random.default_rng(7)
lane = np.repeat(np.arange(LANES), EVENTS // LANES)
length = rng.exponential(1.0, EVENTS)
gap = rng.exponential(0.6, EVENTS)
start = np.concatenate([np.cumsum((length + gap)[lane == k]) - length[lane == k] for k in range(LANES)])
colour = np.arange(EVENTS) % len(COLOURS)
end = start + length
WALL = float(end.max())


def packed(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode()


DATA = (
    f"const lane=new Uint8Array(b('{packed(lane, 'u1')}').buffer),start=new Float32Array(b('{packed(start, 'f4')}').buffer),"
    f"end=new Float32Array(b('{packed(end, 'f4')}').buffer),colour=new Uint8Array(b('{packed(colour, 'u1')}').buffer);"
)
DECODE = "const b=s=>Uint8Array.from(atob(s),c=>c.charCodeAt(0));"


def page(head: str, body: str) -> str:
    return f"<!doctype html><meta charset=utf-8><script>window.t0=performance.now()</script>{head}<body>{body}"


def uplot(packages: Path) -> str:
    folder = next(packages.glob("uplot-*")) / "package" / "dist"
    code = f"""
const W={WALL},C={json.dumps(COLOURS)};
const draw=u=>{{const x=u.ctx,{{left,top,width,height}}=u.bbox,s=u.scales.x,k=width/(s.max-s.min),h=height/{LANES};
 x.save();x.beginPath();x.rect(left,top,width,height);x.clip();
 for(let c=0;c<C.length;c++){{x.fillStyle=C[c];for(let i=c;i<start.length;i+=C.length){{
  if(end[i]<s.min||start[i]>s.max)continue;
  x.fillRect(left+(start[i]-s.min)*k,top+lane[i]*h,Math.max((end[i]-start[i])*k,.5),h-2)}}}}x.restore()}};
const u=new uPlot({{width:1200,height:600,scales:{{x:{{time:false}},y:{{range:[0,1]}}}},series:[{{}},{{}}],hooks:{{draw:[draw]}}}},
 [[0,W],[0,0]],document.body);
window.zoom=(a,z)=>u.setScale('x',{{min:a,max:z}});window.ready=true;"""
    head = f"<style>{(folder / 'uPlot.min.css').read_text()}</style><script>{(folder / 'uPlot.iife.min.js').read_text()}</script>"
    return page(head, f"<script>{DECODE}{DATA}{code}</script>")


def bokeh(backend: str) -> str:
    from bokeh.embed import file_html
    from bokeh.models import ColumnDataSource, Range1d
    from bokeh.plotting import figure
    from bokeh.resources import INLINE

    source = ColumnDataSource({"y": lane, "l": start, "r": end, "c": [COLOURS[i] for i in colour]})
    plot = figure(
        width=1200,
        height=600,
        x_range=Range1d(0, WALL, name="xr"),
        output_backend=backend,
        tools="xpan,xwheel_zoom,hover",
    )
    plot.hbar(y="y", left="l", right="r", height=0.8, color="c", source=source)
    text = file_html(plot, INLINE)
    code = """<script>(function w(){const d=window.Bokeh&&Bokeh.documents[0];if(!d)return setTimeout(w,5);
const v=Object.values(Bokeh.index.roots||Bokeh.index)[0];if(!v)return setTimeout(w,5);
window.zoom=(a,z)=>d.get_model_by_name('xr').setv({start:a,end:z});window.ready=true})()</script>"""
    return text.replace("<head>", "<head><script>window.t0=performance.now()</script>", 1).replace(
        "</body>", code + "</body>"
    )


def plotly() -> str:
    import plotly.graph_objects as go

    traces = []
    for c, shade in enumerate(COLOURS):
        pick = colour == c
        n = int(pick.sum())
        x, y = np.full(3 * n, np.nan), np.full(3 * n, np.nan)
        x[0::3], x[1::3], y[0::3], y[1::3] = start[pick], end[pick], lane[pick], lane[pick]
        traces.append(
            go.Scattergl(x=x.astype("f4"), y=y.astype("f4"), mode="lines", line={"width": 20, "color": shade})
        )
    text = go.Figure(traces, {"width": 1200, "height": 600}).to_html(include_plotlyjs=True, div_id="p")
    code = "<script>window.zoom=(a,z)=>Plotly.relayout('p',{'xaxis.range':[a,z]});window.ready=true</script>"
    return text.replace("<head>", "<head><script>window.t0=performance.now()</script>", 1).replace(
        "</body>", code + "</body>"
    )


def vega(packages: Path) -> str:
    scripts = "".join(
        f"<script>{(next(packages.glob(pattern)) / 'package' / 'build' / name).read_text()}</script>"
        for pattern, name in (
            ("vega-[0-9]*", "vega.min.js"),
            ("vega-lite-*", "vega-lite.min.js"),
            ("vega-embed-*", "vega-embed.min.js"),
        )
    )
    code = f"""
const C={json.dumps(COLOURS)},rows=Array.from(start,(s,i)=>({{s,e:end[i],l:lane[i],c:C[colour[i]]}}));
const spec={{width:1200,height:600,data:[{{name:'t',values:rows}}],signals:[{{name:'dom',value:[0,{WALL}]}}],
scales:[{{name:'x',type:'linear',domain:{{signal:'dom'}},zero:false,range:'width'}},{{name:'y',type:'band',domain:[...Array({LANES}).keys()],range:'height',padding:.1}}],
axes:[{{orient:'bottom',scale:'x'}}],
marks:[{{type:'group',clip:true,encode:{{enter:{{width:{{signal:'width'}},height:{{signal:'height'}}}}}},marks:[{{type:'rect',from:{{data:'t'}},encode:{{enter:{{fill:{{field:'c'}}}},
update:{{x:{{scale:'x',field:'s'}},x2:{{scale:'x',field:'e'}},y:{{scale:'y',field:'l'}},height:{{scale:'y',band:1}}}}}}}}]}}]}};
const v=new vega.View(vega.parse(spec),{{renderer:'canvas',container:document.body}});
v.runAsync().then(()=>{{window.zoom=(a,z)=>v.signal('dom',[a,z]).runAsync();window.ready=true}})"""
    return page(scripts, f"<script>{DECODE}{DATA}{code}</script>")


STEP = """const done=arguments[arguments.length-1],N=arguments[0],W=arguments[1];let i=0,out=[];
const frame=f=>requestAnimationFrame(()=>setTimeout(f,0));
(async function go(){if(i==N)return done(out);const z=W*Math.pow(.6,i),a=(W-z)/2,t=performance.now();i++;
await zoom(a,a+z);frame(()=>{out.push(performance.now()-t);go()})})()"""


def main() -> None:
    packages, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    pages = {
        "uPlot": lambda: uplot(packages),
        "Bokeh (canvas)": lambda: bokeh("canvas"),
        "Bokeh (webgl)": lambda: bokeh("webgl"),
        "Plotly (scattergl)": plotly,
        "Vega": lambda: vega(packages),
    }
    os.environ.update(SE_OFFLINE="true", SE_AVOID_STATS="true")
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1300,800"):
        options.add_argument(flag)
    print("library | file MB | first picture s | zoom step ms: first, median, last")
    for name, build in pages.items():
        path = out / (name.split()[0] + ("-gl" if "webgl" in name else "") + ".html")
        path.write_text(build(), "utf-8")
        driver = webdriver.Chrome(options=options, service=service)
        driver.set_script_timeout(300)
        driver.set_page_load_timeout(300)
        try:
            driver.get(path.as_uri())
            until = time.time() + 200
            while not driver.execute_script("return !!window.ready") and time.time() < until:
                time.sleep(0.05)
            first = driver.execute_async_script(
                "const d=arguments[0];requestAnimationFrame(()=>setTimeout(()=>d(performance.now()-window.t0),0))"
            )
            steps = driver.execute_async_script(STEP, STEPS, WALL)
            size = path.stat().st_size / 1e6
            print(
                f"{name} | {size:.2f} | {first / 1e3:.2f} | {steps[0]:.0f}, {np.median(steps):.0f}, {steps[-1]:.0f}",
                flush=True,
            )
        except Exception as error:
            print(f"{name} | failed: {type(error).__name__} {str(error)[:200]}", flush=True)
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
