// Hostile texts, data and files for the browser stories. Each would set `__hacked`, open a dialog,
// load something from elsewhere or block the page if the page let it.

import { FAR } from './far.mjs';

const RUN = "window.__hacked=1;alert(1)";
const BACKTICKS = '```';

/** Texts for messages, questions and titles, by name. */
export const TEXTS = {
  script: `<script>${RUN}</script>`,
  scriptSource: `<script src="${FAR}/x.js"></script>`,
  scriptSplit: `<scr<script>ipt>${RUN}</scr</script>ipt>`,
  scriptModule: `<script type="module">import "${FAR}/x.js"</script>`,
  imageError: `<img src=x onerror="${RUN}">`,
  imageSlash: `<img/src=x/onerror=${RUN}>`,
  imageFar: `<img src="${FAR}/pixel.png" srcset="${FAR}/2.png 2x">`,
  svgLoad: `<svg onload="${RUN}"><script>${RUN}</script></svg>`,
  svgUse: `<svg><use href="data:image/svg+xml,<svg id='x' xmlns='http://www.w3.org/2000/svg'><script>${RUN}</script></svg>#x"></use></svg>`,
  svgAnimate: `<svg><a><animate attributeName=href values=javascript:${RUN} /><text x=20 y=20>click</text></a></svg>`,
  svgForeign: `<svg><foreignObject><iframe srcdoc="<script>parent.__hacked=1</script>"></iframe></foreignObject></svg>`,
  svgTitle: `<svg><style><img src=x onerror="${RUN}"></style></svg>`,
  math: `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=${RUN}&gt;">`,
  mathLink: `<math href="javascript:${RUN}">click</math>`,
  template: `<template><script>${RUN}</script></template>`,
  templateShadow: `<div><template shadowrootmode=open><img src=x onerror="${RUN}"></template></div>`,
  noscript: `<noscript><p title="</noscript><img src=x onerror=${RUN}>">`,
  style: `<style>@import "${FAR}/x.css"; * { display: none !important } body { background: url(${FAR}/b) }</style>`,
  styleAttribute: `<div style="position:fixed;inset:0;background:url(${FAR}/c);z-index:9999">cover</div>`,
  iframe: `<iframe src="javascript:${RUN}"></iframe><iframe src="${FAR}/"></iframe>`,
  iframeDocument: `<iframe srcdoc="<script>parent.__hacked=1</script>"></iframe>`,
  object: `<object data="data:text/html,<script>${RUN}</script>"></object><embed src="javascript:${RUN}">`,
  base: `<base href="${FAR}/">`,
  metaRefresh: `<meta http-equiv="refresh" content="0;url=${FAR}/">`,
  metaPolicy: `<meta http-equiv="Content-Security-Policy" content="script-src 'none'">`,
  link: `<link rel=stylesheet href="${FAR}/x.css"><link rel=prefetch href="${FAR}/p">`,
  form: `<form action="${FAR}/" id=main><input name=action autofocus onfocus="${RUN}"><button>Allow once</button></form>`,
  details: `<details open ontoggle="${RUN}"><summary>x</summary></details>`,
  media: `<video><source onerror="${RUN}"></video><audio src=x onerror="${RUN}"></audio><body onload="${RUN}">`,
  dialog: `<dialog open>Enter your token <input></dialog><marquee onstart="${RUN}">x</marquee>`,
  clobberLocation: '<a id=location href=x>a</a><img name=location><form name=document><input name=cookie></form>',
  clobberDocument: '<img name=getElementById><a id=app></a><a id=__proto__ name=constructor></a><input name=attributes>',
  clobberPrototype: '<a id=__hacked href="x"></a><a id=__hacked name=x></a>\n\n[a][__proto__] [b][constructor] [toString]',
  closing: `</p></div></article></main></body></html>"><script>${RUN}</script>`,
  comment: `<!--><img src=x onerror="${RUN}">--> <!-- > --!> <img src=x onerror="${RUN}">`,
  cdata: `<![CDATA[<img src=x onerror="${RUN}">]]> <?xml version="1.0"?> <!DOCTYPE x [<!ENTITY e "x">]>`,
  attribute: `"><img src=x onerror="${RUN}"> '><img src=x onerror='${RUN}'> \`><img>`,
  mutation: `<noscript><style></noscript><img src=x onerror="${RUN}"> <x/><title>&lt;/title&gt;<img src=x onerror="${RUN}">`,
  linkScript: `[a](javascript:${RUN}) [b](JaVaScRiPt:${RUN}) [c]( javascript:${RUN})`,
  linkEntities: `[a](&#106;avascript:alert(1)) [b](java&#x73;cript:alert(1)) [c](&#x6A&#x61vascript&colon;alert(1))`,
  linkControls: '[a](java\tscript:alert(1)) [b](<java\nscript:alert(1)>) [c](\u0001javascript:alert(1)) [d](java&Tab;script:alert(1)) [e](java%0ascript:alert(1))',
  linkData: `[a](data:text/html,<script>${RUN}</script>) [b](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==) [c](data:image/svg+xml,x)`,
  linkOthers: '[a](vbscript:MsgBox(1)) [b](file:///etc/passwd) [c](blob:http://127.0.0.1/x) [d](about:blank) [e](view-source:x) [f](intent://x) [g](ftp://x/)',
  linkRelative: '[a](/ui/tasks) [b](//far.invalid/x) [c](?view=history) [d](#x) [e](\\\\far.invalid\\x) [f](../../x) [g](http:far.invalid)',
  linkUser: '[https://bank.example](https://bank.example@far.invalid/) [a](https://user:secret@far.invalid)',
  linkTitle: `[a](https://far.invalid/ "x\\" onmouseover=\\"${RUN}") [b](https://far.invalid/" onclick="${RUN})`,
  linkMail: `[a](mailto:x@far.invalid?subject=<script>) <x@far.invalid> x@far.invalid`,
  linkReference: `[a][r] [b][s] [c]\n\n[r]: javascript:${RUN}\n[s]: <data:text/html,x> "title"\n[c]: vbscript:x`,
  linkNested: `[![a](javascript:alert(1))](javascript:alert(1)) [[a](https://far.invalid/1)](https://far.invalid/2) [a](javascript:alert(1)`,
  autolink: `<javascript:alert(1)> <https://far.invalid/"onclick=alert(1)> https://far.invalid/<img src=x onerror=alert(1)> www.far.invalid javascript://x%0aalert(1)`,
  image: `![a](${FAR}/a.png) ![b](javascript:alert(1)) ![c](data:image/svg+xml,<svg onload=alert(1)>) ![d](x" onerror="alert(1)) ![e][r]\n\n[r]: ${FAR}/r.png`,
  entities: '&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x onerror=alert(1)&#62; &amp;lt;b&amp;gt; &#x0; &#xD800; &#x110000; &NotAName;',
  fence: `${BACKTICKS}html"><img src=x onerror=alert(1)>\n<script>${RUN}</script>\n${BACKTICKS}\n\n~~~js onload=alert(1)\n</code></pre><script>${RUN}</script>`,
  codespan: '`<img src=x onerror=alert(1)>` ``</code><script>alert(1)</script>``',
  heading: `# <img src=x onerror=alert(1)>\n\n<h1>Inbox</h1>\n\n[x](javascript:alert(1))\n===`,
  table: `| <script>${RUN}</script> | [a](javascript:alert(1)) |\n| :-: | --- |\n| <img src=x onerror=alert(1)> | \`|\` <td onclick=alert(1)> |`,
  listHtml: `- <script>${RUN}</script>\n  - <img src=x onerror=alert(1)>\n- [x] <input onfocus=alert(1) autofocus>\n1. <li onclick=alert(1)>`,
  brokenNesting: '**a *b** c* ~~d **e~~ f** [g **h](x) i** `j **k` l** > - # | *** ___ \n> - > 1. > ```\n> text',
  bidi: 'rm -rf \u202e\u2066/tmp\u2069 \u2067txt.exe\u2069 \u200f\u061c right to left: \u202egnp.exe',
  zeroWidth: 'pay\u200bpal\u200c.\u200dcom\u2060 \ufeff \u00ad \u180e \u{e0041}\u{e0042} \u3164 \u2028line\u2029paragraph',
  ansi: '\u001b[31mred\u001b[0m \u001b]8;;https://far.invalid\u0007link\u001b]8;;\u0007 \u001b[2J \u009b1m \u0007\u0008\u007f',
  nul: `a\u0000b <scr\u0000ipt>${RUN}</scr\u0000ipt> java\u0000script:alert(1)`,
  surrogate: 'lone \ud800 and \udfff and [a](https://far.invalid/\ud83d)',
  combining: `Z${'\u0300\u0489\u20dd'.repeat(2_000)} \u{1f468}\u200d\u{1f469}`,
  diff: `--- a/<img src=x onerror=alert(1)>\n+++ b/../../etc/"><script>${RUN}</script>\n@@ -1 +1 @@ <script>${RUN}</script>\n-<b>\n+<img src=x onerror=alert(1)>`,
  diffFence: `${BACKTICKS}diff\ndiff --git a/\u202ex b/javascript:alert(1)\n--- a/\u202ex\n+++ b/javascript:alert(1)\n@@ -1,1 +1,1 @@\n-a\n+</table><script>${RUN}</script>\n${BACKTICKS}`,
  prompt: `{{constructor.constructor('${RUN}')()}} \${${RUN}} #{${RUN}} <%= ${RUN} %> [[__proto__]]`,
  json: `{"__proto__":{"polluted":1},"dangerouslySetInnerHTML":{"__html":"<img src=x onerror=alert(1)>"},"type":"script","props":{}}`,
};

const NEST = 10_000;

/** Texts that cost a careless page seconds. */
export const HEAVY = {
  longLine: 'x'.repeat(1_000_000),
  longLines: `${'y'.repeat(79)}\n`.repeat(12_500),
  quotes: `${'>'.repeat(NEST)} deep`,
  quoteLines: Array.from({ length: 300 }, (_, at) => `${'> '.repeat(at)}q`).join('\n'),
  lists: `${'* '.repeat(NEST)}deep`,
  numbers: `${'1. '.repeat(NEST)}deep`,
  brackets: `${'['.repeat(NEST)}a${']'.repeat(NEST)}`,
  images: `${'!['.repeat(NEST)}a${'](x)'.repeat(NEST)}`,
  stars: `${'*a '.repeat(NEST)}${'**b '.repeat(NEST)}`,
  underscores: `${'_'.repeat(NEST)}a${'_'.repeat(NEST)}`,
  backticks: Array.from({ length: 400 }, (_, at) => `${'`'.repeat(at + 1)} a`).join(' '),
  links: '[a](<b '.repeat(NEST),
  angles: '<'.repeat(100_000),
  entities: '&'.repeat(100_000),
  table: `${'|a'.repeat(500)}|\n${'|-'.repeat(500)}|\n${`${'|b'.repeat(500)}|\n`.repeat(20)}`,
  spaces: `a${' '.repeat(100_000)}b`,
  references: `${Array.from({ length: 2_000 }, (_, at) => `[r${at}]: /u${at}`).join('\n')}\n\n${'[r1] '.repeat(2_000)}`,
  emails: `${'a@'.repeat(20_000)}b`,
  combining: `Z${'\u0300'.repeat(50_000)}`,
  hidden: '\u202e\u200b'.repeat(20_000),
};

const base64 = (text) => Buffer.from(text).toString('base64');
const HTML = `<!doctype html><script>${RUN};top.__hacked=1</script>`;
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" onload="${RUN}"><script>top.__hacked=1</script></svg>`;

const file = (name, mimeType, content) => ({ kind: 'file', file: { name, mimeType, bytes: base64(content) } });
const link = (uri, name, mimeType) => ({ kind: 'file', file: { uri, name, mimeType } });

/** Parts of messages that are not text, by name. */
export const PARTS = {
  proto: [{ kind: 'data', data: JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}') }],
  element: [{ kind: 'data', data: { type: 'script', props: { dangerouslySetInnerHTML: { __html: HTML } }, __html: HTML, constructor: null } }],
  control: [{ kind: 'data', data: { form: { properties: JSON.parse('{"__proto__":{"title":"x"}}') }, choices: ['<b>', 1, null], toolCall: { title: HTML } } }],
  deepData: [{ kind: 'data', data: JSON.parse(`${'['.repeat(60)}${']'.repeat(60)}`) }],
  keys: [{ kind: 'data', data: { [HTML]: HTML, '\u202e': '\u0000', ref: 'x', key: 'x', $$typeof: 1 } }],
  html: [file('page.html', 'text/html', HTML)],
  svg: [file('image.svg', 'image/svg+xml', SVG)],
  svgAsPng: [file('a.png', 'image/png', SVG)],
  typeList: [file('b.png', 'image/png;text/html', HTML), file('c', 'TEXT/HTML', HTML), file('d', 'image/svg+xml;charset=x', SVG)],
  xml: [file('x.xhtml', 'application/xhtml+xml', HTML), file('y.pdf', 'application/pdf', HTML), file('z.js', 'text/javascript', RUN)],
  names: [
    file('../../../etc/passwd', 'text/plain', 'x'),
    file('a.png\u202egnp.exe', 'application/octet-stream', 'x'),
    file(`"><img src=x onerror=alert(1)>`, 'text/plain', 'x'),
    file('CON\r\nSet-Cookie: a=b', 'text/plain', 'x'),
    file('.bashrc', 'text/plain', 'x'),
  ],
  mediaType: [file('a', `text/plain"><script>${RUN}</script>`, 'x')],
  notBase64: [{ kind: 'file', file: { name: 'n', mimeType: 'image/png', bytes: '<script>' } }],
  links: [
    link(`javascript:${RUN}`, 'a.png', 'image/png'),
    link('data:text/html,<script>alert(1)</script>', 'b', 'text/html'),
    link(`${FAR}/c.png`, 'c.png', 'image/png'),
    link('file:///etc/passwd', 'd', 'text/plain'),
  ],
  textTypes: [
    { kind: 'text', text: HTML, metadata: { mediaType: 'text/html', filename: '<b>.html' } },
    { kind: 'text', text: SVG, metadata: { mediaType: 'image/svg+xml' } },
    { kind: 'text', text: TEXTS.diff, metadata: { mediaType: 'text/x-diff' } },
  ],
};

/** Texts for `leak`, which become names, ids, media types and metadata of what an agent emits. */
export const LEAKS = ['script', 'imageError', 'attribute', 'linkScript', 'bidi', 'closing', 'clobberLocation'];
