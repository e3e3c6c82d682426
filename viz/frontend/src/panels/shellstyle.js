/** The CSS of the player around the drawing; `$ink` is a palette colour. Below 740 pixels it has one column. */

import { expandColours } from "../drawing/style.js";

const SHELL_RULES = `
:host{display:block;container-type:inline-size;color:$ink;font:14px/1.45 $font;text-align:left}
*{box-sizing:border-box}
[hidden]{display:none!important}
.say,.predict,.tour,.stage,.minimap,.tabs,.panel,.table,.inspector{border-top:1px solid $rim}
.say,.predict,.tour,.panel{padding:10px 14px}
.say,.inspector,.panel{overflow-wrap:anywhere}
.transport,.words,form,header,.acts,.tabs{display:flex;flex-wrap:wrap;align-items:center}
.keys,.switch,.zoom{display:flex}
.say,.row,.whatif,.slider,.key{display:grid}
.scrub,.minimap svg,.row figure,.plot svg{display:block}
.marks,.phase,.tick,.count{position:absolute}
.phase,.slider b,th,td{overflow:hidden;text-overflow:ellipsis}
.phase,.chip,th,td{white-space:nowrap}
.say,.minimap,.inspector,.help,.plot svg,button,input,select{background:$card}
.title{font-size:16px}
.formula{font:17px math,serif}
.plot,table{font-size:13px}
.marks,.plot text{font-size:11px}
.app{background:$page;border:1px solid $rim;border-radius:10px;overflow:hidden;font-variant-numeric:tabular-nums}
button,input,select{font:inherit;color:inherit;border:1px solid $line;border-radius:6px;padding:3px 9px;min-height:30px;max-width:100%}
button,select{cursor:pointer}
button:hover{border-color:$ink}
button[aria-disabled=true]{color:$muted;cursor:default;opacity:.55}
:focus-visible{outline:3px solid $forward;outline-offset:1px}
.key,button.quiet,.tabs button,button.alarm{border-color:transparent;background:none}
button.quiet{color:$muted;padding:2px 7px}
button.link{border:0;background:none;padding:0 2px;min-height:24px;min-width:24px;color:$forward;text-align:left;text-decoration:underline;text-underline-offset:2px}
.dim{color:$muted}.fw{color:$forward}.bw{color:$backward}.less{color:$negative}
p,dl,dd,.plot{margin:0}
.transport{gap:6px 12px;padding:8px 12px}
button.main,button.play{background:$forward;border-color:$forward;color:$page}
.key{width:34px;height:34px;padding:0;place-items:center}
.key.play{width:40px;border-radius:17px}
.track{position:relative;flex:1 1 180px;min-width:120px;height:36px}
[type=range]{padding:0;border:0;background:none}
.scrub{appearance:none;width:100%;margin:0;min-height:22px;height:22px;--track:linear-gradient(90deg,$halo var(--split),$heat var(--split))}
.scrub::-webkit-slider-runnable-track{height:6px;border-radius:3px;background:var(--track)}
.scrub::-moz-range-track{height:6px;border-radius:3px;background:var(--track)}
.scrub::-webkit-slider-thumb{appearance:none;width:16px;height:16px;margin-top:-5px;border-radius:50%;background:$ink;border:2px solid $page}
.scrub::-moz-range-thumb{width:13px;height:13px;border-radius:50%;background:$ink;border:2px solid $page}
.marks{inset:0 8px;pointer-events:none;line-height:1}
.phase{top:23px;text-align:center}
.phase.forward{color:$forward}.phase.backward{color:$backward}
.tick{top:0;width:2px;height:8px;margin-left:-1px;background:$alarm}
.count{right:0;top:21px;font-size:12px;line-height:14px;color:$muted;background:$page;padding-left:6px}
.speed{padding:2px 0;width:60px;border-color:$rim}
.switch button{border-radius:0;padding:2px 9px}
.switch button:first-child{border-radius:6px 0 0 6px;border-right:0}
.switch button:last-child{border-radius:0 6px 6px 0}
.say{position:relative;padding:8px 74px 8px 14px;min-height:64px;align-content:center;gap:1px}
.copy{position:absolute;right:8px;top:6px;font-size:12px}
.hint{font:14px $font}
.words{gap:2px 12px;align-items:baseline}
.sum{display:inline-block;margin-left:1.2em;color:$muted}
.chip,button[aria-pressed=true],.tabs [aria-expanded=true],thead th{background:$op;color:$on-op;font-weight:600}
.chip{font-size:12px;border-radius:9px;padding:1px 8px}
.chip.forward{background:$forward;color:$page}
.chip.edge,.chip.seed{background:$wash;color:$backward}
.predict,.tour{background:$wash}
form{gap:6px 8px}
.predict label{font-weight:600}
.verdict:not(:empty){margin-top:6px}
.verdict[data-verdict=right]::before{content:"✓ ";font-weight:700}
.caption{font-size:15px;margin-bottom:6px}
.canvas{position:relative;display:flex;flex-direction:column}
.place{margin:auto 0;position:relative}
.short{--mg-view-height:min(38vh,420px)}
.minimap{padding:6px 12px}
.minimap svg{width:100%;height:44px;cursor:pointer;touch-action:none}
.minimap .boxes{fill:$line;opacity:.55}
.minimap .now{fill:$ink;stroke:$ink;stroke-width:3;vector-effect:non-scaling-stroke}
.minimap .seen{fill:$forward;fill-opacity:.1;stroke:$forward;stroke-width:1.5;vector-effect:non-scaling-stroke}
[data-unable]{opacity:.35}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;padding:3px 14px 6px;font-size:12px;color:$muted;background:$page;
& svg{margin-right:5px;fill:$line}
& .positive{fill:$positive}& .negative{fill:$negative}& .mixed{fill:$mixed}& .plus{fill:$plus}& .minus{fill:$minus}& .alarmed{fill:$alarm;fill-rule:evenodd}}
.local span{font:13px math,serif}
.stage:has(>.canvas>.place>[data-far])+.legend .local{display:none}
.keys,.zoom{gap:2px}
.zoom{margin-left:auto}
.tabs .zoom button{min-width:30px;padding:0 4px}
.inspector{padding:10px 14px 12px}
.facts{columns:3 270px;column-gap:32px;margin-top:4px}
.facts .row{break-inside:avoid}
header{align-items:baseline;gap:4px 12px}
.row{align-items:baseline;grid-template-columns:68px minmax(0,1fr);gap:8px;padding:3px 0}
.row:has(figure,.formula){display:block}
.row figure{margin:4px 0}
dt{color:$muted;font-size:12.5px}
code{font:12px/1.4 ui-monospace,monospace}
.alarm{color:$alarm}
button.alarm{text-align:left;padding:3px 0}
.acts{gap:8px;margin-top:8px}
.inspector .acts{margin:0;gap:4px}
.inspector .acts button{font-size:12.5px;min-height:26px;padding:1px 9px;border-color:$rim}
.tabs{gap:4px;padding:4px 10px}
.tabs button:hover{border-color:$line}
.tabs .warn{color:$alarm;font-weight:600}
.panel{padding-bottom:14px}
.list{list-style:none;margin:6px 0 0;padding:0}
.results{margin-top:6px;line-height:1.9}
.whatif{grid-template-columns:minmax(0,1fr) 320px;gap:8px 24px}
.sliders{max-height:236px;overflow:auto;padding-right:6px}
.slider{grid-template-columns:minmax(40px,90px) minmax(60px,1fr) 92px 30px;gap:8px;align-items:center;padding:2px 0}
.slider b{font-weight:500}
.slider.current b{font-weight:700}
.slider [type=range]{accent-color:$forward}
.slider [type=number]{width:100%;appearance:textfield}
.slider ::-webkit-inner-spin-button{display:none}
.plot svg{max-width:100%;height:auto;border:1px solid $rim;border-radius:6px;margin-bottom:6px}
.plot text{fill:$muted}
.curve{fill:none;stroke:$forward;stroke-width:2}
.tangent{stroke:$backward;stroke-width:2;stroke-dasharray:6 3}
.axis{stroke:$rim}
.at{fill:$backward;stroke:$card;stroke-width:1.5}
.table{max-height:340px;overflow:auto}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:0 12px;height:28px;max-width:340px}
thead th{position:sticky;top:0;z-index:1}
tbody th{font-weight:400}
tbody tr:not(.gap){border-bottom:1px solid $rim}
tr[aria-current]{background:$wash;box-shadow:inset 4px 0 0 $hot}
tr.chosen{outline:2px dashed $ink;outline-offset:-2px}
.help{color:$ink;border:1px solid $line;border-radius:10px;padding:18px 22px;max-width:min(520px,92vw)}
.help::backdrop{background:rgb(0 0 0/.35)}
.help .row{grid-template-columns:minmax(90px,150px) 1fr}
.help button{margin-top:12px}
kbd{font:600 13px $font}
@container (max-width:900px){.say{min-height:84px}}
@container (max-width:740px){
.whatif{grid-template-columns:100%}
.say{padding-right:14px}
.chip{margin-right:60px}
.transport{justify-content:space-between;gap:6px 2px}
.track{flex-basis:100%;order:-1}
.key{width:28px}
.key.play{width:36px}
.transport .quiet{padding:2px}
.tabs{padding:6px 4px;gap:0}
.switch button{padding:2px 6px}
}
:host(:fullscreen){--mg-view-height:calc(100vh - 230px);font-size:20px;background:$page;overflow:auto}
:host(:fullscreen) :is(.tabs,.switch,.speed,.copy){display:none}
:host(:fullscreen) .app{border:0}
:host(:fullscreen) .formula{font-size:26px}
@media (forced-colors:active){.scrub::-webkit-slider-runnable-track{background:GrayText}.tick{background:Highlight}}
`;

/** Return the CSS of the player, for its shadow root. */
export const shellStyle = () => expandColours(SHELL_RULES);
