<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>AcceptanceSection</name>
    <message>
        <source>Acceptance</source>
        <translation>接受率</translation>
    </message>
    <message>
        <source>By draft position</source>
        <translation>按草稿位置</translation>
    </message>
    <message>
        <source>Drafts that the full model accepted, of those it tested</source>
        <translation>在完整模型检验过的草稿中，被接受的比例</translation>
    </message>
    <message>
        <source>Share of the cycles whose first drafts, up to this one, were all accepted, with its 95 % band.
A draft pays while its chance is above its cost at the present speed (the dashed line).</source>
        <translation>从第一个草稿到这一个全部被接受的周期所占比例，以及 95 % 区间。
只要草稿被接受的机会高于它在当前速度下的成本（虚线），它就划算。</translation>
    </message>
    <message>
        <source>Acceptance over time</source>
        <translation>接受率随时间的变化</translation>
    </message>
    <message>
        <source>acceptance</source>
        <translation>接受率</translation>
    </message>
    <message>
        <source>break-even</source>
        <translation>盈亏线</translation>
    </message>
    <message>
        <source>no cycles yet</source>
        <translation>还没有周期</translation>
    </message>
    <message>
        <source>Nothing was drafted in this reply.</source>
        <translation>这条回复没有使用草稿。</translation>
    </message>
    <message>
        <source>nothing drafted yet</source>
        <translation>还没有草稿</translation>
    </message>
    <message>
        <source>{share} %</source>
        <translation>{share} %</translation>
    </message>
</context>
<context>
    <name>Attaching</name>
    <message>
        <source>Take text files along</source>
        <translation>附上文本文件</translation>
    </message>
    <message>
        <source>At most {count} files go along.</source>
        <translation>最多附上 {count} 个文件。</translation>
    </message>
</context>
<context>
    <name>Attachments</name>
    <message>
        <source>Files that go along</source>
        <translation>随消息附上的文件</translation>
    </message>
</context>
<context>
    <name>Banner</name>
    <message>
        <source>Dismiss</source>
        <translation>关闭提示</translation>
    </message>
    <message>
        <source>Error: {sentence}</source>
        <translation>错误：{sentence}</translation>
    </message>
</context>
<context>
    <name>BenchPane</name>
    <message>
        <source>Benchmark</source>
        <translation>基准测试</translation>
    </message>
    <message>
        <source>Answers a few questions of four kinds twice, by plain decoding and with speculation, in turns, and compares speed and text. specular-cli bench --data does so with whole sets of questions, and with other programs beside.</source>
        <translation>用普通解码和推测解码轮流回答四类问题，各几道，并比较速度和文字。specular-cli bench --data 可用整套问题测试，并与其他程序比较。</translation>
    </message>
    <message>
        <source>Progress of the benchmark</source>
        <translation>基准测试进度</translation>
    </message>
    <message>
        <source>Measure again</source>
        <translation>再测一次</translation>
    </message>
    <message>
        <source>S: speed over plain decoding, and where it is with 95 % · α: acceptance</source>
        <translation>S：相对普通解码的速度及其 95 % 区间 · α：接受率</translation>
    </message>
    <message>
        <source>Question {done} of {total}: {what}</source>
        <translation>第 {done} / {total} 题：{what}</translation>
    </message>
    <message>
        <source>Warming up</source>
        <translation>正在预热</translation>
    </message>
    <message>
        <source>about {seconds} s left</source>
        <translation>约剩 {seconds} 秒</translation>
    </message>
    <message>
        <source>Stopped before anything could be compared.</source>
        <translation>还没有可对比的内容就停止了。</translation>
    </message>
    <message>
        <source>Another text with speculation: {questions}</source>
        <translation>推测解码得到了不同的文字：{questions}</translation>
    </message>
    <message>
        <source>Stopped. So far {factor}× the speed of plain decoding, and the same text in {count} answers.</source>
        <translation>已停止。到目前为止速度是普通解码的 {factor} 倍，{count} 个回答文字相同。</translation>
    </message>
    <message>
        <source>{factor}× the speed of plain decoding, and the same text in all {count} answers.</source>
        <translation>速度是普通解码的 {factor} 倍，全部 {count} 个回答文字相同。</translation>
    </message>
</context>
<context>
    <name>BenchTable</name>
    <message>
        <source>All</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>Figures of the benchmark</source>
        <translation>基准测试的数字</translation>
    </message>
    <message>
        <source>Questions</source>
        <translation>问题</translation>
    </message>
    <message>
        <source>Plain, tok/s</source>
        <translation>普通，词元/秒</translation>
    </message>
    <message>
        <source>Speculative, tok/s</source>
        <translation>推测，词元/秒</translation>
    </message>
    <message>
        <source>Tokens a cycle</source>
        <translation>每周期词元</translation>
    </message>
    <message>
        <source>Same text</source>
        <translation>文字相同</translation>
    </message>
</context>
<context>
    <name>Budget</name>
    <message>
        <source>Fits: all of the model stays in memory.</source>
        <translation>放得下：整个模型都留在内存中。</translation>
    </message>
    <message>
        <source>Fits with {count} of {parts} parts streamed.</source>
        <translation>放得下：{parts} 个部分中有 {count} 个流式读取。</translation>
    </message>
    <message>
        <source>Does not fit: at least {least} are needed.</source>
        <translation>放不下：至少需要 {least}。</translation>
    </message>
    <message>
        <source>About {plain} tok/s plain; no draft.</source>
        <translation>普通解码约 {plain} 词元/秒；不使用草稿。</translation>
    </message>
    <message>
        <source>About {plain} tok/s plain, {speculative} with speculation.</source>
        <translation>普通解码约 {plain} 词元/秒，推测解码约 {speculative} 词元/秒。</translation>
    </message>
    <message>
        <source>A context of {amount} tokens: {verdict}, about {speed} tok/s.</source>
        <translation>上下文改为 {amount} 词元：{verdict}，约 {speed} 词元/秒。</translation>
    </message>
    <message>
        <source>A budget of {amount}: {verdict}, about {speed} tok/s.</source>
        <translation>预算改为 {amount}：{verdict}，约 {speed} 词元/秒。</translation>
    </message>
    <message>
        <source>No draft: {verdict}, about {speed} tok/s.</source>
        <translation>不使用草稿：{verdict}，约 {speed} 词元/秒。</translation>
    </message>
    <message>
        <source>Closing other programs: {verdict}, about {speed} tok/s.</source>
        <translation>关闭其他程序：{verdict}，约 {speed} 词元/秒。</translation>
    </message>
    <message>
        <source>fits</source>
        <translation>放得下</translation>
    </message>
    <message>
        <source>fits streamed</source>
        <translation>流式读取可放下</translation>
    </message>
    <message>
        <source>does not fit</source>
        <translation>放不下</translation>
    </message>
</context>
<context>
    <name>BudgetEditor</name>
    <message>
        <source>Parts moved</source>
        <translation>已移动的部分</translation>
    </message>
    <message>
        <source>Load again</source>
        <translation>重新加载</translation>
    </message>
    <message>
        <source>Predicted from the model&apos;s headers and the memory&apos;s speed, which was measured here.</source>
        <translation>根据模型文件头和在本机测得的内存速度预测。</translation>
    </message>
    <message>
        <source>Predicted from the model&apos;s headers and the speed that such hardware usually has.</source>
        <translation>根据模型文件头和同类硬件的常见速度预测。</translation>
    </message>
    <message>
        <source>Estimated peak {estimate} with a full context; measured since the load: {measured}.</source>
        <translation>上下文写满时预计峰值 {estimate}；加载以来实测峰值：{measured}。</translation>
    </message>
    <message>
        <source>n/a</source>
        <translation>无数据</translation>
    </message>
    <message>
        <source>The budget has stayed as it was: {reason}</source>
        <translation>预算保持不变：{reason}</translation>
    </message>
</context>
<context>
    <name>BudgetField</name>
    <message>
        <source>Memory budget in GB</source>
        <translation>内存预算（GB）</translation>
    </message>
    <message>
        <source>What is free</source>
        <translation>全部可用内存</translation>
    </message>
</context>
<context>
    <name>BusSection</name>
    <message>
        <source>PCIe traffic</source>
        <translation>PCIe 流量</translation>
    </message>
    <message>
        <source>to the card</source>
        <translation>到显卡</translation>
    </message>
    <message>
        <source>from the card</source>
        <translation>来自显卡</translation>
    </message>
    <message>
        <source>PCIe traffic over time</source>
        <translation>PCIe 流量随时间的变化</translation>
    </message>
    <message>
        <source>MB/s</source>
        <translation>MB/s</translation>
    </message>
    <message>
        <source>The model is not on a card: nothing goes over a bus.</source>
        <translation>模型不在显卡上：总线上没有数据。</translation>
    </message>
    <message>
        <source>MB/s to the card</source>
        <translation>MB/s 到显卡</translation>
    </message>
</context>
<context>
    <name>CalibrationPane</name>
    <message>
        <source>Calibrate</source>
        <translation>校准</translation>
    </message>
    <message>
        <source>Lets the model answer some prompts, measures on this computer what each way to make its draft costs and how often that draft is right, and keeps the ones that make replies faster. The text of replies never depends on it.</source>
        <translation>让模型回答几个提示词，在本机测量每种草稿做法的成本和命中率，并保留能让回复更快的做法。回复的文字不会因此改变。</translation>
    </message>
    <message>
        <source>Progress of the calibration</source>
        <translation>校准进度</translation>
    </message>
    <message>
        <source>Calibrate again</source>
        <translation>重新校准</translation>
    </message>
    <message>
        <source>c: cost of a draft step · α: acceptance · S: speed, both against plain decoding</source>
        <translation>c：草稿一步的成本 · α：接受率 · S：速度；c 和 S 均相对普通解码</translation>
    </message>
</context>
<context>
    <name>CalibrationRow</name>
    <message>
        <source>Calibration</source>
        <translation>校准</translation>
    </message>
    <message>
        <source>Calibrate…</source>
        <translation>校准…</translation>
    </message>
    <message>
        <source>Finds the fastest draft for the model on this computer, in about two minutes.</source>
        <translation>用大约两分钟找出模型在本机上最快的草稿。</translation>
    </message>
    <message>
        <source>In use, measured here: {recipe}.</source>
        <translation>正在使用（本机实测）：{recipe}。</translation>
    </message>
    <message>
        <source>In use: {recipe}.</source>
        <translation>正在使用：{recipe}。</translation>
    </message>
    <message>
        <source>Possible when a model is loaded and no reply is being written</source>
        <translation>加载模型后，且没有正在生成的回复时可用</translation>
    </message>
</context>
<context>
    <name>CandidateRow</name>
    <message>
        <source>n/a</source>
        <translation>无数据</translation>
    </message>
    <message>
        <source>{piece}: draft {draft}, full model {full}. Regenerate from here with it.</source>
        <translation>{piece}：草稿 {draft}，完整模型 {full}。从这里改用它重新生成。</translation>
    </message>
    <message>
        <source>Token {id}. Regenerate from here with it.</source>
        <translation>词元 {id}。从这里改用它重新生成。</translation>
    </message>
</context>
<context>
    <name>ChatBranches</name>
    <message>
        <source>{title} (branch)</source>
        <translation>{title}（分支）</translation>
    </message>
</context>
<context>
    <name>ChatDelegate</name>
    <message>
        <source>Title of the chat</source>
        <translation>对话标题</translation>
    </message>
</context>
<context>
    <name>ChatDialogs</name>
    <message>
        <source>Export chat</source>
        <translation>导出对话</translation>
    </message>
    <message>
        <source>Markdown (*.md)</source>
        <translation>Markdown (*.md)</translation>
    </message>
    <message>
        <source>Specular chat with its cycles (*.json)</source>
        <translation>Specular 对话及其周期 (*.json)</translation>
    </message>
    <message>
        <source>Import chat</source>
        <translation>导入对话</translation>
    </message>
    <message>
        <source>Specular chats (*.json)</source>
        <translation>Specular 对话 (*.json)</translation>
    </message>
</context>
<context>
    <name>ChatList</name>
    <message>
        <source>Chats</source>
        <translation>对话</translation>
    </message>
</context>
<context>
    <name>ChatListModel</name>
    <message>
        <source>A reply is being written</source>
        <translation>正在写回复</translation>
    </message>
    <message>
        <source>Untitled</source>
        <translation>未命名</translation>
    </message>
    <message>
        <source>Replay: {title}</source>
        <translation>回放：{title}</translation>
    </message>
    <message>
        <source>Pinned</source>
        <translation>置顶</translation>
    </message>
    <message>
        <source>Today</source>
        <translation>今天</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>昨天</translation>
    </message>
    <message>
        <source>Earlier</source>
        <translation>更早</translation>
    </message>
</context>
<context>
    <name>ChatScope</name>
    <message>
        <source>of the open chat</source>
        <translation>属于当前对话</translation>
    </message>
    <message>
        <source>Use for new chats</source>
        <translation>也用于新对话</translation>
    </message>
    <message>
        <source>New chats begin with these values; other chats keep their own</source>
        <translation>新对话以这些值开始；其他对话保留各自的值</translation>
    </message>
</context>
<context>
    <name>ChatShelf</name>
    <message>
        <source>This chat cannot be read.</source>
        <translation>无法读取这个对话。</translation>
    </message>
    <message>
        <source>Unpin</source>
        <translation>取消置顶</translation>
    </message>
    <message>
        <source>Pin</source>
        <translation>置顶</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>重命名</translation>
    </message>
    <message>
        <source>Duplicate</source>
        <translation>复制一份</translation>
    </message>
    <message>
        <source>Export as Markdown…</source>
        <translation>导出为 Markdown…</translation>
    </message>
    <message>
        <source>Export with cycles (JSON)…</source>
        <translation>连同周期导出 (JSON)…</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>{title} (copy)</source>
        <translation>{title}（副本）</translation>
    </message>
    <message>
        <source>Chat “{title}” was deleted</source>
        <translation>对话“{title}”已删除</translation>
    </message>
    <message>
        <source>Untitled</source>
        <translation>未命名</translation>
    </message>
    <message>
        <source>Exported to {file}</source>
        <translation>已导出到 {file}</translation>
    </message>
</context>
<context>
    <name>Cockpit</name>
    <message>
        <source>Cockpit</source>
        <translation>驾驶舱</translation>
    </message>
    <message>
        <source>Replay</source>
        <translation>回放</translation>
    </message>
    <message>
        <source>These are the figures of a stored reply. No model is running it.</source>
        <translation>这些数字来自一条已保存的回复，此刻没有模型在运行。</translation>
    </message>
    <message>
        <source>Hide the cockpit (Ctrl+J)</source>
        <translation>隐藏驾驶舱（Ctrl+J）</translation>
    </message>
</context>
<context>
    <name>CodeCard</name>
    <message>
        <source>Copy code</source>
        <translation>复制代码</translation>
    </message>
    <message>
        <source>Scroll sideways</source>
        <translation>左右滚动</translation>
    </message>
</context>
<context>
    <name>CommandPalette</name>
    <message>
        <source>Commands</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>Type a command</source>
        <translation>输入命令</translation>
    </message>
</context>
<context>
    <name>Commands</name>
    <message>
        <source>Chats</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Reply</source>
        <translation>回复</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Window</source>
        <translation>窗口</translation>
    </message>
    <message>
        <source>Tokens of a reply</source>
        <translation>回复中的词元</translation>
    </message>
    <message>
        <source>The token before</source>
        <translation>上一个词元</translation>
    </message>
    <message>
        <source>The token after</source>
        <translation>下一个词元</translation>
    </message>
    <message>
        <source>The cycle before</source>
        <translation>上一个周期</translation>
    </message>
    <message>
        <source>The cycle after</source>
        <translation>下一个周期</translation>
    </message>
    <message>
        <source>Open the token&apos;s card</source>
        <translation>打开词元卡片</translation>
    </message>
</context>
<context>
    <name>ComparePane</name>
    <message>
        <source>Compare with plain decoding</source>
        <translation>与普通解码对比</translation>
    </message>
    <message>
        <source>The same prompt twice on the one engine, one after the other: first by plain decoding, then with speculation. During the second run the first is replayed beside it. Clocks start when the prompt is read.</source>
        <translation>同一个提示词在同一个引擎上先后运行两次：先用普通解码，再用推测解码。第二次运行时，旁边回放第一次。读完提示词后开始计时。</translation>
    </message>
    <message>
        <source>Plain decoding</source>
        <translation>普通解码</translation>
    </message>
    <message>
        <source>With speculation</source>
        <translation>推测解码</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Compare again</source>
        <translation>再次对比</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>1 of 2: plain decoding…</source>
        <translation>第 1 步，共 2 步：普通解码…</translation>
    </message>
    <message>
        <source>2 of 2: with speculation…</source>
        <translation>第 2 步，共 2 步：推测解码…</translation>
    </message>
    <message>
        <source>Plain decoding, replayed</source>
        <translation>普通解码（回放）</translation>
    </message>
    <message>
        <source>2 of 2: with speculation. Identical so far: {count} tokens</source>
        <translation>第 2 步，共 2 步：推测解码。目前完全相同：{count} 词元</translation>
    </message>
    <message>
        <source>Different from token {place} on. This must not happen: please export a report of it.</source>
        <translation>从第 {place} 个词元起不同。这不应该发生：请为此导出一份报告。</translation>
    </message>
    <message>
        <source>Stopped before anything could be compared.</source>
        <translation>还没有可对比的内容就停止了。</translation>
    </message>
    <message>
        <source>Stopped. Identical so far: {count} tokens.</source>
        <translation>已停止。目前完全相同：{count} 词元。</translation>
    </message>
    <message>
        <source>Identical: {count} tokens.</source>
        <translation>完全相同：{count} 词元。</translation>
    </message>
    <message>
        <source>Slower than plain: {factor}× as fast. Identical: {count} tokens.</source>
        <translation>比普通解码慢：速度是它的 {factor} 倍。完全相同：{count} 词元。</translation>
    </message>
    <message>
        <source>Identical: {count} tokens, {factor}× as fast as plain.</source>
        <translation>完全相同：{count} 词元，速度是普通解码的 {factor} 倍。</translation>
    </message>
</context>
<context>
    <name>CompareRun</name>
    <message>
        <source>The comparison was interrupted.</source>
        <translation>对比被中断。</translation>
    </message>
</context>
<context>
    <name>CompareSide</name>
    <message>
        <source>Time of decoding: {title}</source>
        <translation>解码用时：{title}</translation>
    </message>
    <message>
        <source>{seconds} s</source>
        <translation>{seconds} 秒</translation>
    </message>
    <message>
        <source>{count} tokens</source>
        <translation>{count} 词元</translation>
    </message>
    <message>
        <source>{speed} tok/s</source>
        <translation>{speed} 词元/秒</translation>
    </message>
</context>
<context>
    <name>Comparisons</name>
    <message>
        <source>A comparison can start when the engine is free.</source>
        <translation>引擎空闲时才能开始对比。</translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Greedy</source>
        <translation>贪心</translation>
    </message>
    <message>
        <source>Speculation auto</source>
        <translation>自动推测</translation>
    </message>
    <message>
        <source>Take text files along</source>
        <translation>附上文本文件</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>发送</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Stopping…</source>
        <translation>正在停止…</translation>
    </message>
    <message>
        <source>Write a message</source>
        <translation>输入消息</translation>
    </message>
    <message>
        <source>Write a message. It can be sent when the model is ready.</source>
        <translation>输入消息，模型就绪后即可发送。</translation>
    </message>
    <message>
        <source>Write a follow-up. It can be sent when this reply ends.</source>
        <translation>继续提问，本次回复结束后即可发送。</translation>
    </message>
</context>
<context>
    <name>ComposerInput</name>
    <message>
        <source>Message</source>
        <translation>消息</translation>
    </message>
</context>
<context>
    <name>ContextGauge</name>
    <message>
        <source>{used} of {total} tokens of the context are used.</source>
        <translation>上下文已用 {used} / {total} 词元。</translation>
    </message>
    <message>
        <source>{used} of {total} tokens</source>
        <translation>{used} / {total} 词元</translation>
    </message>
    <message>
        <source>{used} of {total} tokens, filling up</source>
        <translation>{used} / {total} 词元，快要用满</translation>
    </message>
    <message>
        <source>{used} of {total} tokens, nearly full</source>
        <translation>{used} / {total} 词元，几乎用满</translation>
    </message>
</context>
<context>
    <name>ConversationView</name>
    <message>
        <source>Watch a recorded demo</source>
        <translation>观看录制的演示</translation>
    </message>
    <message>
        <source>A reply recorded earlier is replayed; no model is needed</source>
        <translation>回放一条事先录制的回复，不需要模型</translation>
    </message>
    <message>
        <source>Jump to latest</source>
        <translation>跳到最新</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>对话</translation>
    </message>
</context>
<context>
    <name>CountsRow</name>
    <message>
        <source>draft</source>
        <translation>草稿</translation>
    </message>
    <message>
        <source>verify</source>
        <translation>验证</translation>
    </message>
    <message>
        <source>transfer wait</source>
        <translation>等待传输</translation>
    </message>
    <message>
        <source>accepted</source>
        <translation>已接受</translation>
    </message>
    <message>
        <source>rejected</source>
        <translation>已拒绝</translation>
    </message>
    <message>
        <source>corrections</source>
        <translation>修正</translation>
    </message>
    <message>
        <source>bonus</source>
        <translation>额外</translation>
    </message>
    <message>
        <source>plain</source>
        <translation>普通</translation>
    </message>
    <message>
        <source>Token counts</source>
        <translation>词元计数</translation>
    </message>
    <message>
        <source>Tokens decoded without a draft.</source>
        <translation>没有草稿、直接解码的词元。</translation>
    </message>
    <message>
        <source>Drafts that the full model agreed with.</source>
        <translation>完整模型认可的草稿。</translation>
    </message>
    <message>
        <source>The full model&apos;s own choice instead of a rejected draft.</source>
        <translation>草稿被拒绝后，由完整模型自己选出的词元。</translation>
    </message>
    <message>
        <source>The full model&apos;s extra token after drafts that were all accepted.</source>
        <translation>草稿全部被接受后，完整模型多给出的一个词元。</translation>
    </message>
    <message>
        <source>Drafts that the full model replaced.</source>
        <translation>被完整模型替换的草稿。</translation>
    </message>
    <message>
        <source>{count} more drafts came after a wrong one and were not tested.</source>
        <translation>另有 {count} 个草稿排在错误草稿之后，没有检验。</translation>
    </message>
</context>
<context>
    <name>CycleTimeline</name>
    <message>
        <source>Cycle timeline</source>
        <translation>周期时间线</translation>
    </message>
    <message>
        <source>Cycle {cycle}: one token without a draft, {verify} ms.</source>
        <translation>周期 {cycle}：一个词元，没有草稿，{verify} 毫秒。</translation>
    </message>
    <message>
        <source>Cycle {cycle}: {accepted} of {drafted} drafts accepted, {emitted} tokens. Draft {draft} ms, verify {verify} ms, transfer wait {wait} ms.</source>
        <translation>周期 {cycle}：{drafted} 个草稿接受 {accepted} 个，得到 {emitted} 个词元。草稿 {draft} 毫秒，验证 {verify} 毫秒，等待传输 {wait} 毫秒。</translation>
    </message>
</context>
<context>
    <name>DownloadBox</name>
    <message>
        <source>OWNER/NAME, or OWNER/NAME/FILE.gguf</source>
        <translation>OWNER/NAME，或 OWNER/NAME/FILE.gguf</translation>
    </message>
    <message>
        <source>Model on the hub</source>
        <translation>模型中心上的模型</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>下载</translation>
    </message>
    <message>
        <source>Progress of the download</source>
        <translation>下载进度</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>暂停</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Give the download up and delete what arrived</source>
        <translation>放弃下载并删除已下载的部分</translation>
    </message>
    <message>
        <source>Asking the hub…</source>
        <translation>正在询问模型中心…</translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation>{done} / {total}</translation>
    </message>
    <message>
        <source>paused</source>
        <translation>已暂停</translation>
    </message>
    <message>
        <source>{rate} MB/s</source>
        <translation>{rate} MB/s</translation>
    </message>
    <message>
        <source>From the model hub, with its login: only safetensors and the texts beside them, or one GGUF file.</source>
        <translation>从模型中心下载，使用其登录信息：只取 safetensors 及旁边的文本文件，或一个 GGUF 文件。</translation>
    </message>
</context>
<context>
    <name>Engine</name>
    <message>
        <source>Starting the engine</source>
        <translation>正在启动引擎</translation>
    </message>
    <message>
        <source>Reading tensors</source>
        <translation>正在读取张量</translation>
    </message>
    <message>
        <source>Converting tensors</source>
        <translation>正在转换张量</translation>
    </message>
    <message>
        <source>Preparing the draft</source>
        <translation>正在准备草稿</translation>
    </message>
    <message>
        <source>Preparing the draft&apos;s neurons</source>
        <translation>正在准备草稿的神经元</translation>
    </message>
    <message>
        <source>Capturing graphs</source>
        <translation>正在捕获计算图</translation>
    </message>
    <message>
        <source>Capturing the draft</source>
        <translation>正在捕获草稿</translation>
    </message>
    <message>
        <source>Bringing in layer {layer}&apos;s MLP</source>
        <translation>正在读入第 {layer} 层的 MLP</translation>
    </message>
    <message>
        <source>Bringing in layer {layer}&apos;s attention</source>
        <translation>正在读入第 {layer} 层的注意力</translation>
    </message>
    <message>
        <source>Bringing in the output matrix</source>
        <translation>正在读入输出矩阵</translation>
    </message>
    <message>
        <source>Moving parts of the model</source>
        <translation>正在移动模型的各部分</translation>
    </message>
    <message>
        <source>CPU, {count} cores</source>
        <translation>CPU，{count} 核</translation>
    </message>
    <message>
        <source>the model&apos;s own weights</source>
        <translation>模型自己的权重</translation>
    </message>
    <message>
        <source>{bits}-bit weights</source>
        <translation>{bits} 位权重</translation>
    </message>
    <message>
        <source>{share} of input channels dropped</source>
        <translation>丢弃 {share} 的输入通道</translation>
    </message>
    <message>
        <source>{share} of MLP neurons</source>
        <translation>{share} 的 MLP 神经元</translation>
    </message>
    <message>
        <source>{share} of attention heads</source>
        <translation>{share} 的注意力头</translation>
    </message>
    <message>
        <source>{count} output tokens</source>
        <translation>{count} 个输出词元</translation>
    </message>
    <message>
        <source>the last {count} positions attended to</source>
        <translation>回看最近 {count} 个位置</translation>
    </message>
    <message>
        <source>Setting {what} The default is used.</source>
        <translation>设置 {what} 已改用默认值。</translation>
    </message>
    <message>
        <source>Settings will not be kept: {file} cannot be written ({cause}).</source>
        <translation>设置不会保留：无法写入 {file}（{cause}）。</translation>
    </message>
    <message>
        <source>{file} cannot be read ({cause}), so defaults are used.</source>
        <translation>无法读取 {file}（{cause}），因此使用默认值。</translation>
    </message>
    <message>
        <source>{file} is not valid, so defaults are used; it was kept as {name}.</source>
        <translation>{file} 无效，因此使用默认值；原文件已保留为 {name}。</translation>
    </message>
    <message>
        <source>{file} is not valid and cannot be moved ({cause}), so defaults are used.</source>
        <translation>{file} 无效且无法移走（{cause}），因此使用默认值。</translation>
    </message>
    <message>
        <source>It cannot be kept as it was ({cause}).</source>
        <translation>无法保留原文件（{cause}）。</translation>
    </message>
    <message>
        <source>As it was, it is kept as {name}.</source>
        <translation>原文件已保留为 {name}。</translation>
    </message>
    <message>
        <source>{file} was written by a newer version of Specular (format {version}). {kept}</source>
        <translation>{file} 由更新版本的 Specular 写入（格式 {version}）。{kept}</translation>
    </message>
    <message>
        <source>Safe mode: all settings are the defaults, are not kept, and no model is loaded by itself.</source>
        <translation>安全模式：所有设置均为默认值且不会保留，也不会自动加载模型。</translation>
    </message>
    <message>
        <source>No model is loaded.</source>
        <translation>没有加载模型。</translation>
    </message>
    <message>
        <source>The engine was restarted.</source>
        <translation>引擎已重新启动。</translation>
    </message>
    <message>
        <source>There is not enough memory to go on.</source>
        <translation>内存不足，无法继续。</translation>
    </message>
    <message>
        <source>There is not enough memory to load {model}.</source>
        <translation>内存不足，无法加载 {model}。</translation>
    </message>
    <message>
        <source>There is not enough memory to move parts of the model.</source>
        <translation>内存不足，无法移动模型的各部分。</translation>
    </message>
    <message>
        <source>There is not enough memory for a draft by this recipe.</source>
        <translation>内存不足，无法按这个配方制作草稿。</translation>
    </message>
    <message>
        <source>Here the budget can only change by loading the model again.</source>
        <translation>这里只有重新加载模型才能更改预算。</translation>
    </message>
    <message>
        <source>{path} does not exist: give &quot;starter&quot;, a model folder or a .gguf file.</source>
        <translation>{path} 不存在：请给出 &quot;starter&quot;、模型文件夹或 .gguf 文件。</translation>
    </message>
    <message>
        <source>{path} is neither a model folder nor a .gguf file.</source>
        <translation>{path} 既不是模型文件夹，也不是 .gguf 文件。</translation>
    </message>
    <message>
        <source>The prompt has {count} tokens, but the context holds {capacity}, and the reply needs room too.</source>
        <translation>提示词有 {count} 词元，但上下文只能容纳 {capacity}，还要为回复留出空间。</translation>
    </message>
    <message>
        <source>The model needs {wanted} GB of RAM {how} (of it {draft} GB for the draft and {kv} GB for {context} tokens of context), but {bound}.</source>
        <translation>模型{how}需要 {wanted} GB 内存（其中草稿 {draft} GB，{context} 词元的上下文 {kv} GB），但{bound}。</translation>
    </message>
    <message>
        <source>at the least</source>
        <translation>至少</translation>
    </message>
    <message>
        <source>with all of its weights in memory</source>
        <translation>在全部权重都进入内存时</translation>
    </message>
    <message>
        <source>the budget is {size} GB</source>
        <translation>预算是 {size} GB</translation>
    </message>
    <message>
        <source>this computer has {size} GB of RAM free</source>
        <translation>这台电脑只有 {size} GB 空闲内存</translation>
    </message>
    <message>
        <source>The budget is {budget}, but this model with this context needs at least {least}.</source>
        <translation>预算是 {budget}，但这个模型加上这么长的上下文至少需要 {least}。</translation>
    </message>
    <message>
        <source>The hub cannot be reached ({cause}); {still}.</source>
        <translation>无法连接模型中心（{cause}）；{still}。</translation>
    </message>
    <message>
        <source>The hub refused ({status}); {still}.</source>
        <translation>模型中心拒绝了请求（{status}）；{still}。</translation>
    </message>
    <message>
        <source>HF_HUB_OFFLINE forbids asking the hub; {still}.</source>
        <translation>HF_HUB_OFFLINE 禁止访问模型中心；{still}。</translation>
    </message>
    <message>
        <source>models on this computer work as ever</source>
        <translation>这台计算机上的模型照常可用</translation>
    </message>
    <message>
        <source>{name} is given only to those who accept its terms: do so at {page} and log in.</source>
        <translation>{name} 只提供给接受其条款的人：请在 {page} 接受并登录。</translation>
    </message>
    <message>
        <source>4-bit source: a draft on the same grid would match it exactly.</source>
        <translation>4 位来源：同一网格上的草稿会与它完全一致。</translation>
    </message>
    <message>
        <source>Downloading {file}</source>
        <translation>正在下载 {file}</translation>
    </message>
    <message>
        <source>This card does not tell it.</source>
        <translation>这块显卡不提供这个数字。</translation>
    </message>
    <message>
        <source>The driver tells it to administrators only.</source>
        <translation>驱动只向管理员提供这个数字。</translation>
    </message>
    <message>
        <source>The driver does not know the card that the model is on.</source>
        <translation>驱动找不到模型所在的显卡。</translation>
    </message>
    <message>
        <source>The NVIDIA driver is not loaded.</source>
        <translation>NVIDIA 驱动没有加载。</translation>
    </message>
    <message>
        <source>NVIDIA&apos;s management library is not installed.</source>
        <translation>没有安装 NVIDIA 的管理库。</translation>
    </message>
    <message>
        <source>The installed NVIDIA driver is too old to tell it.</source>
        <translation>已安装的 NVIDIA 驱动太旧，不提供这个数字。</translation>
    </message>
    <message>
        <source>The driver has lost the card.</source>
        <translation>驱动与显卡失去了联系。</translation>
    </message>
    <message>
        <source>The driver does not tell what this program takes, as in a container or under Windows.</source>
        <translation>驱动不提供本程序的占用，例如在容器中或 Windows 下。</translation>
    </message>
    <message>
        <source>The bus is asked only while its figures are shown.</source>
        <translation>只有在显示总线数字时才会读取总线。</translation>
    </message>
    <message>
        <source>Measured between two readings; this is the first.</source>
        <translation>在两次读数之间测量；这是第一次。</translation>
    </message>
    <message>
        <source>Something before this load took more memory, which hides its peak.</source>
        <translation>这次加载之前占用过更多内存，掩盖了它的峰值。</translation>
    </message>
    <message>
        <source>This system does not tell the peak of a program&apos;s memory.</source>
        <translation>这个系统不提供程序内存的峰值。</translation>
    </message>
    <message>
        <source>, </source>
        <translation>，</translation>
    </message>
</context>
<context>
    <name>Explanation</name>
    <message>
        <source>The figures behind the verdict</source>
        <translation>速度说明所依据的数字</translation>
    </message>
    <message>
        <source>n/a</source>
        <translation>无数据</translation>
    </message>
</context>
<context>
    <name>Figure</name>
    <message>
        <source>n/a</source>
        <translation>无数据</translation>
    </message>
</context>
<context>
    <name>FindingsTable</name>
    <message>
        <source>On</source>
        <translation>开</translation>
    </message>
    <message>
        <source>Off</source>
        <translation>关</translation>
    </message>
    <message>
        <source>Not here</source>
        <translation>此处不可用</translation>
    </message>
    <message>
        <source>Not tried</source>
        <translation>未尝试</translation>
    </message>
    <message>
        <source>Draft</source>
        <translation>草稿</translation>
    </message>
    <message>
        <source>Cost of a draft step, in plain steps</source>
        <translation>草稿一步的成本，以普通解码一步计</translation>
    </message>
    <message>
        <source>Acceptance: share of drafted tokens that are the model&apos;s own</source>
        <translation>接受率：草稿词元中与模型自己选择相同的比例</translation>
    </message>
    <message>
        <source>Tokens a cycle</source>
        <translation>每周期词元</translation>
    </message>
    <message>
        <source>At the draft length γ that serves best</source>
        <translation>采用最合适的草稿长度 γ 时</translation>
    </message>
    <message>
        <source>Speed expected, over plain decoding</source>
        <translation>预期速度，相对普通解码</translation>
    </message>
</context>
<context>
    <name>FoldButton</name>
    <message>
        <source>{name}: fold</source>
        <translation>{name}：折叠</translation>
    </message>
    <message>
        <source>{name}: unfold</source>
        <translation>{name}：展开</translation>
    </message>
</context>
<context>
    <name>GrowingText</name>
    <message>
        <source>Reply</source>
        <translation>回复</translation>
    </message>
</context>
<context>
    <name>Headline</name>
    <message>
        <source>n/a</source>
        <translation>无数据</translation>
    </message>
</context>
<context>
    <name>HelpRow</name>
    <message>
        <source>Take it</source>
        <translation>采用</translation>
    </message>
    <message>
        <source>Take a budget of {size}</source>
        <translation>采用 {size} 的预算</translation>
    </message>
</context>
<context>
    <name>History</name>
    <message>
        <source>{file} was written by a newer version of Specular (format {found}, this one writes {known}). It stays as it is; chats of this run are not kept.</source>
        <translation>{file} 由更新版本的 Specular 写成（格式 {found}，本版本写 {known}）。文件保持原样；本次运行的对话不会保留。</translation>
    </message>
    <message>
        <source>{file} was damaged. It was kept as {aside}, and the {count} chats that can be read were brought over.</source>
        <translation>{file} 已损坏。它被保留为 {aside}，能读出的 {count} 个对话已经转入。</translation>
    </message>
    <message>
        <source>Chats of this run are not kept: {file} cannot be written ({cause}).</source>
        <translation>本次运行的对话不会保留：无法写入 {file}（{cause}）。</translation>
    </message>
    <message>
        <source>Chats cannot be written at the moment ({cause}). Specular keeps trying while it runs.</source>
        <translation>目前无法写入对话（{cause}）。Specular 在运行期间会继续尝试。</translation>
    </message>
    <message>
        <source>Interrupted: Specular ended while this was being written. What had come was kept.</source>
        <translation>已中断：写这条回复时 Specular 退出了。已写出的内容保留了下来。</translation>
    </message>
</context>
<context>
    <name>HistorySection</name>
    <message>
        <source>Memory over time</source>
        <translation>内存随时间的变化</translation>
    </message>
    <message>
        <source>in use</source>
        <translation>已用</translation>
    </message>
    <message>
        <source>this program</source>
        <translation>本程序</translation>
    </message>
    <message>
        <source>KV mapped</source>
        <translation>KV 已映射</translation>
    </message>
    <message>
        <source>all there is</source>
        <translation>总量</translation>
    </message>
    <message>
        <source>GiB</source>
        <translation>GiB</translation>
    </message>
    <message>
        <source>n/a</source>
        <translation>无数据</translation>
    </message>
</context>
<context>
    <name>HitModel</name>
    <message>
        <source>Untitled</source>
        <translation>未命名</translation>
    </message>
</context>
<context>
    <name>JobPane</name>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Starting…</source>
        <translation>正在开始…</translation>
    </message>
</context>
<context>
    <name>KvDetails</name>
    <message>
        <source>No virtual memory, because {reason}.</source>
        <translation>未使用虚拟内存，原因：{reason}。</translation>
    </message>
    <message>
        <source>Figures of the KV cache</source>
        <translation>KV 缓存的数字</translation>
    </message>
    <message>
        <source>n/a</source>
        <translation>无数据</translation>
    </message>
</context>
<context>
    <name>Labels</name>
    <message>
        <source>Greedy</source>
        <translation>贪心</translation>
    </message>
    <message>
        <source>Temperature {value}</source>
        <translation>温度 {value}</translation>
    </message>
    <message>
        <source>Speculation off</source>
        <translation>推测已关闭</translation>
    </message>
    <message>
        <source>Speculation γ {count}</source>
        <translation>推测 γ {count}</translation>
    </message>
    <message>
        <source>Speculation auto</source>
        <translation>自动推测</translation>
    </message>
    <message>
        <source>compared with plain: different from token {place}</source>
        <translation>与普通解码对比：从第 {place} 个词元起不同</translation>
    </message>
    <message>
        <source>compared with plain: identical so far, {count} tokens</source>
        <translation>与普通解码对比：目前完全相同，{count} 词元</translation>
    </message>
    <message>
        <source>compared with plain: identical, {factor}× as fast</source>
        <translation>与普通解码对比：完全相同，速度 {factor} 倍</translation>
    </message>
    <message>
        <source>compared with plain: identical</source>
        <translation>与普通解码对比：完全相同</translation>
    </message>
    <message>
        <source>recorded with {model} on {device}</source>
        <translation>录制于 {device}，模型 {model}</translation>
    </message>
</context>
<context>
    <name>LayerMap</name>
    <message>
        <source>Layer map</source>
        <translation>层图</translation>
    </message>
    <message>
        <source>no model</source>
        <translation>没有模型</translation>
    </message>
    <message>
        <source>where</source>
        <translation>位置</translation>
    </message>
    <message>
        <source>attn</source>
        <translation>注意力</translation>
    </message>
    <message>
        <source>MLP</source>
        <translation>MLP</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>streamed</source>
        <translation>流式</translation>
    </message>
    <message>
        <source>CPU</source>
        <translation>CPU</translation>
    </message>
    <message>
        <source>skipped</source>
        <translation>跳过</translation>
    </message>
    <message>
        <source>No draft yet</source>
        <translation>还没有草稿</translation>
    </message>
    <message>
        <source>Draft, cycle {cycle}:</source>
        <translation>草稿，周期 {cycle}：</translation>
    </message>
    <message>
        <source>attention</source>
        <translation>注意力</translation>
    </message>
    <message>
        <source>heads</source>
        <translation>注意力头</translation>
    </message>
    <message>
        <source>neurons</source>
        <translation>神经元</translation>
    </message>
    <message>
        <source>{inputs} % of the input channels, {bits}-bit weights</source>
        <translation>{inputs} % 的输入通道，{bits} 位权重</translation>
    </message>
    <message>
        <source>on the GPU</source>
        <translation>在 GPU 上</translation>
    </message>
    <message>
        <source>brought in for every full pass</source>
        <translation>每次完整计算时读入</translation>
    </message>
    <message>
        <source>in RAM, computed by the CPU</source>
        <translation>在内存中，由 CPU 计算</translation>
    </message>
    <message>
        <source>Layer {layer}: {place}</source>
        <translation>第 {layer} 层：{place}</translation>
    </message>
    <message>
        <source>Layer {layer}: attention {first}, MLP {second}</source>
        <translation>第 {layer} 层：注意力{first}，MLP {second}</translation>
    </message>
    <message>
        <source>{part}: left out</source>
        <translation>{part}：已略去</translation>
    </message>
    <message>
        <source>{part}: {share} % of the {units}</source>
        <translation>{part}：{units}的 {share} %</translation>
    </message>
</context>
<context>
    <name>LayersSection</name>
    <message>
        <source>Layers</source>
        <translation>层</translation>
    </message>
    <message>
        <source>draft density, cycle {cycle}</source>
        <translation>草稿密度，周期 {cycle}</translation>
    </message>
    <message>
        <source>draft density, last {count} cycles</source>
        <translation>草稿密度，最近 {count} 个周期</translation>
    </message>
</context>
<context>
    <name>Legend</name>
    <message>
        <source>Upper bar and first figure: draft. Lower bar and second figure: full model.</source>
        <translation>上方的条和第一个数字：草稿。下方的条和第二个数字：完整模型。</translation>
    </message>
    <message>
        <source>full</source>
        <translation>完整</translation>
    </message>
    <message>
        <source>draft</source>
        <translation>草稿</translation>
    </message>
</context>
<context>
    <name>LinkQuestion</name>
    <message>
        <source>Open link?</source>
        <translation>打开链接？</translation>
    </message>
    <message>
        <source>Copy address</source>
        <translation>复制地址</translation>
    </message>
    <message>
        <source>Open in browser</source>
        <translation>在浏览器中打开</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>This link is not opened: it leads to no page.</source>
        <translation>此链接不会打开：它不指向网页。</translation>
    </message>
    <message>
        <source>Write to this address?</source>
        <translation>要给这个地址写邮件吗？</translation>
    </message>
    <message>
        <source>Open a page of {host}?</source>
        <translation>打开 {host} 的网页？</translation>
    </message>
    <message>
        <source>“{user}” before the @ is a user name and says nothing about where the link leads.</source>
        <translation>@ 前面的“{user}”是用户名，与链接通向哪里无关。</translation>
    </message>
    <message>
        <source>The name is shown elsewhere as “{name}”, whose letters may look like those of another.</source>
        <translation>这个名称在别处会显示为“{name}”，其中的字母可能与另一个名称相似。</translation>
    </message>
    <message>
        <source>The connection is not encrypted.</source>
        <translation>连接未加密。</translation>
    </message>
</context>
<context>
    <name>LogPane</name>
    <message>
        <source>Log</source>
        <translation>日志</translation>
    </message>
    <message>
        <source>End of the log</source>
        <translation>日志末尾</translation>
    </message>
    <message>
        <source>Copy diagnostics</source>
        <translation>复制诊断信息</translation>
    </message>
    <message>
        <source>Versions, machine, model, settings and the log&apos;s end, without names and folders of yours</source>
        <translation>版本、机器、模型、设置和日志末尾，不含你的名字和文件夹</translation>
    </message>
    <message>
        <source>Open folder</source>
        <translation>打开文件夹</translation>
    </message>
    <message>
        <source>Read again</source>
        <translation>重新读取</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Nothing has been logged.</source>
        <translation>还没有日志。</translation>
    </message>
    <message>
        <source>Copied.</source>
        <translation>已复制。</translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>New chat</source>
        <translation>新对话</translation>
    </message>
    <message>
        <source>Search chats</source>
        <translation>搜索对话</translation>
    </message>
    <message>
        <source>Show or hide the chats</source>
        <translation>显示或隐藏对话列表</translation>
    </message>
    <message>
        <source>Show or hide the cockpit</source>
        <translation>显示或隐藏驾驶舱</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Stop, or back to the chat</source>
        <translation>停止，或返回对话</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>退出</translation>
    </message>
</context>
<context>
    <name>Memory</name>
    <message>
        <source>KV cache, full</source>
        <translation>KV 缓存（写满）</translation>
    </message>
    <message>
        <source>Streamed weights</source>
        <translation>流式权重</translation>
    </message>
    <message>
        <source>Not part of the budget: they stay outside and are brought in for every full pass.</source>
        <translation>不计入预算：留在外面，每次完整计算时读入。</translation>
    </message>
    <message>
        <source>What the rows take once the whole context is filled.</source>
        <translation>整个上下文写满后各行占用的内存。</translation>
    </message>
    <message>
        <source>Buffers of the passes and what the driver takes.</source>
        <translation>计算所用的缓冲区和驱动占用的内存。</translation>
    </message>
    <message>
        <source>The model does not fit this budget.</source>
        <translation>这个预算放不下模型。</translation>
    </message>
    <message>
        <source>A plain tensor has no pages.</source>
        <translation>普通张量没有页。</translation>
    </message>
    <message>
        <source>Pages: {operation}</source>
        <translation>页：{operation}</translation>
    </message>
    <message>
        <source>How often since the load, and the mean time of each.</source>
        <translation>加载以来的次数和每次的平均时间。</translation>
    </message>
    <message>
        <source>It has not happened since the load.</source>
        <translation>加载以来没有发生过。</translation>
    </message>
    <message>
        <source>Reserved</source>
        <translation>已保留</translation>
    </message>
    <message>
        <source>Addresses set aside, which take no memory by themselves.</source>
        <translation>预留的地址，本身不占内存。</translation>
    </message>
    <message>
        <source>Whole context</source>
        <translation>完整上下文</translation>
    </message>
    <message>
        <source>What one conversation takes when its context is full.</source>
        <translation>一个对话写满上下文时占用的内存。</translation>
    </message>
    <message>
        <source>Mapped</source>
        <translation>已映射</translation>
    </message>
    <message>
        <source>Backed by memory.</source>
        <translation>已有内存支持。</translation>
    </message>
    <message>
        <source>Used</source>
        <translation>已用</translation>
    </message>
    <message>
        <source>Rows of tokens that exist, and those the running cycle may write.</source>
        <translation>已有词元的行，以及当前周期可能写入的行。</translation>
    </message>
    <message>
        <source>Fragmentation</source>
        <translation>碎片</translation>
    </message>
    <message>
        <source>Mapped beyond what is used.</source>
        <translation>超出使用部分的映射。</translation>
    </message>
    <message>
        <source>Pool</source>
        <translation>页池</translation>
    </message>
    <message>
        <source>Pages created ahead of need.</source>
        <translation>提前创建的页。</translation>
    </message>
    <message>
        <source>Page size</source>
        <translation>页大小</translation>
    </message>
    <message>
        <source>The least that is mapped at a time.</source>
        <translation>每次映射的最小单位。</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Chats whose rows are kept.</source>
        <translation>保留着行的对话。</translation>
    </message>
    <message>
        <source>Evicted</source>
        <translation>已让出</translation>
    </message>
    <message>
        <source>Chats that gave up their rows to others since the load.</source>
        <translation>加载以来把行让给其他对话的对话。</translation>
    </message>
    <message>
        <source>Pages late</source>
        <translation>迟到的页</translation>
    </message>
    <message>
        <source>Pages that a cycle had to wait for.</source>
        <translation>周期不得不等待的页。</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>权重</translation>
    </message>
    <message>
        <source>Streaming slots</source>
        <translation>流式槽位</translation>
    </message>
    <message>
        <source>Draft copy</source>
        <translation>草稿副本</translation>
    </message>
    <message>
        <source>KV used</source>
        <translation>KV 已用</translation>
    </message>
    <message>
        <source>KV mapped</source>
        <translation>KV 已映射</translation>
    </message>
    <message>
        <source>KV pool</source>
        <translation>KV 页池</translation>
    </message>
    <message>
        <source>Workspace</source>
        <translation>工作区</translation>
    </message>
    <message>
        <source>Other programs</source>
        <translation>其他程序</translation>
    </message>
    <message>
        <source>Workspace, others</source>
        <translation>工作区及其他</translation>
    </message>
    <message>
        <source>Free</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>Everything else this program holds: code, libraries, buffers of the passes and the allocator&apos;s cache.</source>
        <translation>本程序占用的其余部分：代码、库、计算缓冲区和分配器缓存。</translation>
    </message>
    <message>
        <source>All that is in use beside the model. How much of it is this program&apos;s is not known: {reason}</source>
        <translation>模型以外的全部占用。其中多少属于本程序无法得知：{reason}</translation>
    </message>
    <message>
        <source>Room in which the weights that did not fit take turns, pass by pass.</source>
        <translation>放不下的权重在每次计算时轮流使用的空间。</translation>
    </message>
    <message>
        <source>Mapped for the KV cache beyond the rows that are used.</source>
        <translation>为 KV 缓存映射、但尚未使用的部分。</translation>
    </message>
    <message>
        <source>Pages created ahead for the KV cache, to which nothing is mapped.</source>
        <translation>为 KV 缓存提前创建、尚未映射的页。</translation>
    </message>
    <message>
        <source>Weights are mapped from their file and come into memory as they are read; not all of them have been.</source>
        <translation>权重从文件映射，读到时才进入内存；目前还没有全部读过。</translation>
    </message>
    <message>
        <source>The driver counts less for this program than the model alone takes.</source>
        <translation>驱动报告的本程序占用比模型本身还少。</translation>
    </message>
    <message>
        <source>No model is loaded.</source>
        <translation>没有加载模型。</translation>
    </message>
    <message>
        <source>n/a</source>
        <translation>无数据</translation>
    </message>
</context>
<context>
    <name>MemoryBar</name>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
</context>
<context>
    <name>MemoryLegend</name>
    <message>
        <source>Parts of the memory</source>
        <translation>内存的组成</translation>
    </message>
</context>
<context>
    <name>MemorySection</name>
    <message>
        <source>Memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>KV cache</source>
        <translation>KV 缓存</translation>
    </message>
    <message>
        <source>GPU memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>RAM</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>of {total}</source>
        <translation>/ {total}</translation>
    </message>
    <message>
        <source>of {budget} budget</source>
        <translation>/ {budget} 预算</translation>
    </message>
    <message>
        <source>What this program takes, of all there is</source>
        <translation>本程序的占用和总量</translation>
    </message>
</context>
<context>
    <name>MessageEditor</name>
    <message>
        <source>Edited message</source>
        <translation>修改后的消息</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>发送</translation>
    </message>
</context>
<context>
    <name>ModelChip</name>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Cancel the load</source>
        <translation>取消加载</translation>
    </message>
    <message>
        <source>Starting the engine…</source>
        <translation>正在启动引擎…</translation>
    </message>
    <message>
        <source>Starter model</source>
        <translation>入门模型</translation>
    </message>
    <message>
        <source>{what}, {done} of {total}</source>
        <translation>{what}，{done} / {total}</translation>
    </message>
    <message>
        <source>{done} of {total} MB</source>
        <translation>{done} / {total} MB</translation>
    </message>
    <message>
        <source>{count} context</source>
        <translation>{count} 上下文</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>选择模型</translation>
    </message>
    <message>
        <source>Models…</source>
        <translation>模型…</translation>
    </message>
    <message>
        <source>Open folder…</source>
        <translation>打开文件夹…</translation>
    </message>
    <message>
        <source>Open GGUF file…</source>
        <translation>打开 GGUF 文件…</translation>
    </message>
    <message>
        <source>Demo</source>
        <translation>演示</translation>
    </message>
    <message>
        <source>Open replay…</source>
        <translation>打开回放…</translation>
    </message>
    <message>
        <source>Unload</source>
        <translation>卸载</translation>
    </message>
</context>
<context>
    <name>ModelDialogs</name>
    <message>
        <source>Open a model folder</source>
        <translation>打开模型文件夹</translation>
    </message>
    <message>
        <source>Open a GGUF file</source>
        <translation>打开 GGUF 文件</translation>
    </message>
    <message>
        <source>GGUF models (*.gguf)</source>
        <translation>GGUF 模型 (*.gguf)</translation>
    </message>
    <message>
        <source>Open a replay</source>
        <translation>打开回放</translation>
    </message>
    <message>
        <source>Replays (*.json)</source>
        <translation>回放 (*.json)</translation>
    </message>
</context>
<context>
    <name>ModelLibrary</name>
    <message>
        <source>{size} MB were freed.</source>
        <translation>已释放 {size} MB。</translation>
    </message>
</context>
<context>
    <name>ModelManager</name>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Add folder…</source>
        <translation>添加文件夹…</translation>
    </message>
    <message>
        <source>Add GGUF file…</source>
        <translation>添加 GGUF 文件…</translation>
    </message>
    <message>
        <source>Delete converted copies</source>
        <translation>删除转换后的副本</translation>
    </message>
    <message>
        <source>A GGUF file is converted when it is first loaded. Deleted copies are made again then.</source>
        <translation>GGUF 文件在首次加载时转换。删除的副本会在那时重新生成。</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Reading the list…</source>
        <translation>正在读取列表…</translation>
    </message>
    <message>
        <source>No model is known yet: add one, drop one here, or download one.</source>
        <translation>还没有模型：请添加、拖放到此处或下载一个。</translation>
    </message>
    <message>
        <source>or drop one here</source>
        <translation>或拖放到此处</translation>
    </message>
</context>
<context>
    <name>ModelRow</name>
    <message>
        <source>Resume</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>加载</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>移除</translation>
    </message>
    <message>
        <source>Remove {name}</source>
        <translation>移除 {name}</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>保留</translation>
    </message>
    <message>
        <source>It is loaded now; unload it first.</source>
        <translation>它正在使用中，请先卸载。</translation>
    </message>
    <message>
        <source>It is in the hub&apos;s own cache, which hf cache manages.</source>
        <translation>它在模型中心自己的缓存里，由 hf cache 管理。</translation>
    </message>
    <message>
        <source>loaded</source>
        <translation>已加载</translation>
    </message>
</context>
<context>
    <name>Models</name>
    <message>
        <source>Fits this computer</source>
        <translation>适合这台计算机</translation>
    </message>
    <message>
        <source>Fits streamed: parts are brought in for every pass</source>
        <translation>可流式运行：每次前向都要读入部分权重</translation>
    </message>
    <message>
        <source>Does not fit this computer</source>
        <translation>这台计算机装不下</translation>
    </message>
    <message>
        <source>added</source>
        <translation>已添加</translation>
    </message>
    <message>
        <source>downloaded</source>
        <translation>已下载</translation>
    </message>
    <message>
        <source>hub cache</source>
        <translation>模型中心缓存</translation>
    </message>
    <message>
        <source>not complete</source>
        <translation>未完成</translation>
    </message>
    <message>
        <source>Starter model</source>
        <translation>入门模型</translation>
    </message>
    <message>
        <source>context {count}</source>
        <translation>上下文 {count}</translation>
    </message>
    <message>
        <source>The download is not complete</source>
        <translation>下载尚未完成</translation>
    </message>
    <message>
        <source>Cannot be loaded</source>
        <translation>无法加载</translation>
    </message>
    <message>
        <source>n/a: this computer&apos;s memory could not be asked</source>
        <translation>n/a：无法查询这台计算机的内存</translation>
    </message>
    <message>
        <source>Take it off the list? Its files stay where they are.</source>
        <translation>从列表中移除？文件会留在原处。</translation>
    </message>
    <message>
        <source>Take off</source>
        <translation>移出列表</translation>
    </message>
    <message>
        <source>Delete {size} from this computer?</source>
        <translation>从这台计算机删除 {size}？</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
</context>
<context>
    <name>ModelsProcess</name>
    <message>
        <source>The command ended without saying why.</source>
        <translation>命令已结束，但没有说明原因。</translation>
    </message>
    <message>
        <source>The list of models cannot be read: {cause}.</source>
        <translation>无法读取模型列表：{cause}。</translation>
    </message>
</context>
<context>
    <name>Notices</name>
    <message>
        <source>Load again</source>
        <translation>重新加载</translation>
    </message>
    <message>
        <source>Shall Specular be in the menu of your applications, and open models by a double click?</source>
        <translation>要把 Specular 加入应用程序菜单，并能双击打开模型吗？</translation>
    </message>
    <message>
        <source>Add it</source>
        <translation>加入</translation>
    </message>
    <message>
        <source>Show the report</source>
        <translation>查看报告</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>详细信息</translation>
    </message>
    <message>
        <source>Load the starter model</source>
        <translation>加载入门模型</translation>
    </message>
    <message>
        <source>No model is loaded. Your text is kept.</source>
        <translation>没有加载模型。你的文字已保留。</translation>
    </message>
    <message>
        <source>The starter model is not on this computer yet. It is a download of 98 MB.</source>
        <translation>入门模型还不在这台电脑上。需要下载 98 MB。</translation>
    </message>
    <message>
        <source>Fetch the starter model</source>
        <translation>下载入门模型</translation>
    </message>
    <message>
        <source>Fetching the starter model (98 MB)…</source>
        <translation>正在下载入门模型（98 MB）…</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>重试</translation>
    </message>
    <message>
        <source>This helps whoever looks into the fault.</source>
        <translation>这些信息有助于查找故障。</translation>
    </message>
    <message>
        <source>Restart the engine</source>
        <translation>重新启动引擎</translation>
    </message>
</context>
<context>
    <name>Opening</name>
    <message>
        <source>{path} is no model, chat or replay that Specular can open.</source>
        <translation>{path} 不是 Specular 能打开的模型、对话或回放。</translation>
    </message>
</context>
<context>
    <name>PathEditor</name>
    <message>
        <source>Choose…</source>
        <translation>选择…</translation>
    </message>
    <message>
        <source>Starter model</source>
        <translation>入门模型</translation>
    </message>
    <message>
        <source>Open folder…</source>
        <translation>打开文件夹…</translation>
    </message>
    <message>
        <source>Open GGUF file…</source>
        <translation>打开 GGUF 文件…</translation>
    </message>
</context>
<context>
    <name>PositionPlot</name>
    <message>
        <source>Acceptance by draft position</source>
        <translation>各草稿位置的接受率</translation>
    </message>
    <message>
        <source>no drafts yet</source>
        <translation>还没有草稿</translation>
    </message>
    <message>
        <source>break-even {share} %</source>
        <translation>盈亏线 {share} %</translation>
    </message>
    <message>
        <source>break-even</source>
        <translation>盈亏线</translation>
    </message>
</context>
<context>
    <name>ProvePane</name>
    <message>
        <source>Prove it</source>
        <translation>对比验证</translation>
    </message>
    <message>
        <source>Answers the same prompts twice, by plain decoding and with speculation, and compares every token and the model&apos;s scores for it bit for bit. Follow-up questions compare a kept conversation with one that is read anew.</source>
        <translation>把同样的提示词回答两遍：普通解码一遍，推测解码一遍，逐位比较每个词元和模型给它的分数。后续提问比较保留的对话和重新读取的对话。</translation>
    </message>
    <message>
        <source>Progress of the proof</source>
        <translation>验证进度</translation>
    </message>
    <message>
        <source>Prove again</source>
        <translation>再次验证</translation>
    </message>
    <message>
        <source>{prompt}: {done} of {total} tokens made, half of them by plain decoding</source>
        <translation>{prompt}：已生成 {done} / {total} 词元，其中一半用普通解码</translation>
    </message>
    <message>
        <source>Stopped. Identical so far: {tokens} tokens, ids and logits, over {prompts} prompts</source>
        <translation>已停止。目前完全相同：{prompts} 个提示词，{tokens} 个词元，编号和 logits 都一致</translation>
    </message>
    <message>
        <source>Identical: {tokens} tokens, ids and logits, over {prompts} prompts</source>
        <translation>完全相同：{prompts} 个提示词，{tokens} 个词元，编号和 logits 都一致</translation>
    </message>
    <message>
        <source>{prompt}: {tokens} equal</source>
        <translation>{prompt}：{tokens} 个相同</translation>
    </message>
    <message>
        <source>{prompt}: different after {tokens}</source>
        <translation>{prompt}：{tokens} 个之后不同</translation>
    </message>
</context>
<context>
    <name>Recovery</name>
    <message>
        <source>Specular ended while it loaded {model}, so it was not loaded again.</source>
        <translation>Specular 上次在加载 {model} 时意外退出，因此没有再次加载它。</translation>
    </message>
    <message>
        <source>Specular did not end as it should the last time. Your chat is back.</source>
        <translation>Specular 上次未正常退出。您的对话已恢复。</translation>
    </message>
    <message>
        <source>Specular did not end as it should the last time.</source>
        <translation>Specular 上次未正常退出。</translation>
    </message>
    <message>
        <source>Report of the last run</source>
        <translation>上次运行的报告</translation>
    </message>
</context>
<context>
    <name>ReloadTag</name>
    <message>
        <source>reload</source>
        <translation>需重新加载</translation>
    </message>
    <message>
        <source>A change loads the model again.</source>
        <translation>更改后会重新加载模型。</translation>
    </message>
</context>
<context>
    <name>ReplayBar</name>
    <message>
        <source>Replay of a stored reply</source>
        <translation>回放已保存的回复</translation>
    </message>
    <message>
        <source>Replay</source>
        <translation>回放</translation>
    </message>
    <message>
        <source>A stored reply shown again from its record. No model is running.</source>
        <translation>按记录重新显示一条已保存的回复，没有模型在运行。</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>暂停</translation>
    </message>
    <message>
        <source>Position in the replay</source>
        <translation>回放位置</translation>
    </message>
    <message>
        <source>End the replay</source>
        <translation>结束回放</translation>
    </message>
    <message>
        <source>Speed of the replay</source>
        <translation>回放速度</translation>
    </message>
    <message>
        <source>Times the speed at which the reply was written</source>
        <translation>相对回复生成时速度的倍数</translation>
    </message>
    <message>
        <source>Play</source>
        <translation>播放</translation>
    </message>
    <message>
        <source>{now} of {all} s</source>
        <translation>{now} / {all} 秒</translation>
    </message>
</context>
<context>
    <name>ReplyView</name>
    <message>
        <source>Keep rejected guesses in the text</source>
        <translation>在文中保留被拒绝的猜测</translation>
    </message>
    <message>
        <source>Show cycles</source>
        <translation>显示周期</translation>
    </message>
    <message>
        <source>Raw tokens</source>
        <translation>原始词元</translation>
    </message>
    <message>
        <source>Replay</source>
        <translation>回放</translation>
    </message>
    <message>
        <source>Compare with plain decoding…</source>
        <translation>与普通解码对比…</translation>
    </message>
    <message>
        <source>Export report…</source>
        <translation>导出报告…</translation>
    </message>
    <message>
        <source>Copy reply</source>
        <translation>复制回复</translation>
    </message>
    <message>
        <source>Regenerate</source>
        <translation>重新生成</translation>
    </message>
    <message>
        <source>Continue this reply</source>
        <translation>继续写这条回复</translation>
    </message>
    <message>
        <source>New chat from here</source>
        <translation>从这里另开对话</translation>
    </message>
    <message>
        <source>More</source>
        <translation>更多</translation>
    </message>
    <message>
        <source>Reading the prompt… {done} of {total} tokens</source>
        <translation>正在读取提示词… {done} / {total} 词元</translation>
    </message>
    <message>
        <source>The reply could not be finished.</source>
        <translation>回复未能完成。</translation>
    </message>
    <message>
        <source>Error: {sentence}</source>
        <translation>错误：{sentence}</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>Ended at the length limit</source>
        <translation>达到长度上限</translation>
    </message>
    <message>
        <source>Ended because the context is full</source>
        <translation>上下文已满</translation>
    </message>
    <message>
        <source>no tokens</source>
        <translation>没有词元</translation>
    </message>
    <message>
        <source>{speed} tok/s</source>
        <translation>{speed} 词元/秒</translation>
    </message>
    <message>
        <source>{share} % accepted</source>
        <translation>接受率 {share} %</translation>
    </message>
    <message>
        <source>{factor}× plain</source>
        <translation>普通解码的 {factor} 倍</translation>
    </message>
</context>
<context>
    <name>Report</name>
    <message>
        <source>Cycle timeline</source>
        <translation>周期时间线</translation>
    </message>
    <message>
        <source>Cycle {cycle}: {accepted} of {drafted} drafts accepted, {emitted} tokens, draft {draft} ms, verify {verify} ms, transfer wait {wait} ms</source>
        <translation>周期 {cycle}：{drafted} 个草稿接受 {accepted} 个，得到 {emitted} 个词元，草稿 {draft} 毫秒，验证 {verify} 毫秒，等待传输 {wait} 毫秒</translation>
    </message>
    <message>
        <source>Acceptance by draft position, per cent</source>
        <translation>各草稿位置的接受率（%）</translation>
    </message>
    <message>
        <source>position {place}: {share} % of {cycles} cycles, 95 % interval {low} to {high} %</source>
        <translation>位置 {place}：{cycles} 个周期中的 {share} %，95 % 区间 {low} 到 {high} %</translation>
    </message>
    <message>
        <source>Specular report</source>
        <translation>Specular 报告</translation>
    </message>
    <message>
        <source>Written {time} on {system}</source>
        <translation>于 {time} 在 {system} 上写成</translation>
    </message>
    <message>
        <source>Prompt</source>
        <translation>提示词</translation>
    </message>
    <message>
        <source>Reply</source>
        <translation>回复</translation>
    </message>
    <message>
        <source>Figures</source>
        <translation>数字</translation>
    </message>
    <message>
        <source>In numbers</source>
        <translation>具体数值</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Machine</source>
        <translation>机器</translation>
    </message>
    <message>
        <source>The reply could not be finished.</source>
        <translation>回复未能完成。</translation>
    </message>
    <message>
        <source>n/a</source>
        <translation>无数据</translation>
    </message>
    <message>
        <source>Nothing was decoded.</source>
        <translation>没有解码任何内容。</translation>
    </message>
    <message>
        <source>Nothing was drafted.</source>
        <translation>没有使用草稿。</translation>
    </message>
    <message>
        <source>No plain step was measured in this reply.</source>
        <translation>这条回复没有测量普通解码的步骤。</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>速度</translation>
    </message>
    <message>
        <source>Plain decoding, measured</source>
        <translation>普通解码（实测）</translation>
    </message>
    <message>
        <source>Speed-up over plain</source>
        <translation>相对普通解码的加速</translation>
    </message>
    <message>
        <source>Accepted of tested drafts</source>
        <translation>检验过的草稿中被接受的比例</translation>
    </message>
    <message>
        <source>Tokens per cycle</source>
        <translation>每周期词元</translation>
    </message>
    <message>
        <source>Draft step, in plain steps</source>
        <translation>草稿一步，以普通解码一步计</translation>
    </message>
    <message>
        <source>Verify pass, in plain steps</source>
        <translation>一次验证，以普通解码一步计</translation>
    </message>
    <message>
        <source>Drafted / tested / accepted</source>
        <translation>起草 / 检验 / 接受</translation>
    </message>
    <message>
        <source>Tokens of the prompt (reused)</source>
        <translation>提示词的词元（复用）</translation>
    </message>
    <message>
        <source>Tokens of the reply</source>
        <translation>回复的词元</translation>
    </message>
    <message>
        <source>Reading the prompt</source>
        <translation>读取提示词</translation>
    </message>
    <message>
        <source>Decoding</source>
        <translation>解码</translation>
    </message>
    <message>
        <source>Ended by</source>
        <translation>结束原因</translation>
    </message>
    <message>
        <source>This reply was not compared with plain decoding.</source>
        <translation>这条回复没有与普通解码对比。</translation>
    </message>
    <message>
        <source>Compared with plain decoding</source>
        <translation>与普通解码对比</translation>
    </message>
    <message>
        <source>its end token</source>
        <translation>结束词元</translation>
    </message>
    <message>
        <source>a stop string</source>
        <translation>停止字符串</translation>
    </message>
    <message>
        <source>the length limit</source>
        <translation>长度上限</translation>
    </message>
    <message>
        <source>the context being full</source>
        <translation>上下文已满</translation>
    </message>
    <message>
        <source>the user</source>
        <translation>用户</translation>
    </message>
    <message>
        <source>an error</source>
        <translation>错误</translation>
    </message>
    <message>
        <source>on</source>
        <translation>开</translation>
    </message>
    <message>
        <source>off</source>
        <translation>关</translation>
    </message>
    <message>
        <source>Speculation</source>
        <translation>推测解码</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>Draft length γ</source>
        <translation>草稿长度 γ</translation>
    </message>
    <message>
        <source>Greedy</source>
        <translation>贪心</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>Repetition penalty</source>
        <translation>重复惩罚</translation>
    </message>
    <message>
        <source>A greedy reply draws no random numbers.</source>
        <translation>贪心回复不使用随机数。</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>随机种子</translation>
    </message>
    <message>
        <source>There was no limit but the context.</source>
        <translation>除上下文外没有上限。</translation>
    </message>
    <message>
        <source>Longest reply</source>
        <translation>最长回复</translation>
    </message>
    <message>
        <source>all</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>Draft weights</source>
        <translation>草稿权重</translation>
    </message>
    <message>
        <source>Input channels dropped</source>
        <translation>丢弃的输入通道</translation>
    </message>
    <message>
        <source>MLP neurons / attention heads kept</source>
        <translation>保留的 MLP 神经元 / 注意力头</translation>
    </message>
    <message>
        <source>Attention / MLP blocks skipped</source>
        <translation>跳过的注意力 / MLP 子层</translation>
    </message>
    <message>
        <source>Output tokens</source>
        <translation>输出词元</translation>
    </message>
    <message>
        <source>Positions attended to</source>
        <translation>回看的位置</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>File or folder</source>
        <translation>文件或文件夹</translation>
    </message>
    <message>
        <source>Family, layers × width, vocabulary</source>
        <translation>系列、层数 × 宽度、词表</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>上下文</translation>
    </message>
    <message>
        <source>Weights</source>
        <translation>权重</translation>
    </message>
    <message>
        <source>Draft copy</source>
        <translation>草稿副本</translation>
    </message>
    <message>
        <source>Chat template</source>
        <translation>对话模板</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>Kernels</source>
        <translation>内核</translation>
    </message>
    <message>
        <source>cycle {number}</source>
        <translation>周期 {number}</translation>
    </message>
</context>
<context>
    <name>Reports</name>
    <message>
        <source>Export report</source>
        <translation>导出报告</translation>
    </message>
    <message>
        <source>Report: page, picture and replay (*.html)</source>
        <translation>报告：网页、图片和回放 (*.html)</translation>
    </message>
    <message>
        <source>report saved as {page}, with .png and .json beside it</source>
        <translation>报告已保存为 {page}，旁边有 .png 和 .json</translation>
    </message>
</context>
<context>
    <name>RestartTag</name>
    <message>
        <source>next start</source>
        <translation>下次启动</translation>
    </message>
    <message>
        <source>A change counts from the next start of Specular.</source>
        <translation>更改在下次启动 Specular 时生效。</translation>
    </message>
</context>
<context>
    <name>SearchField</name>
    <message>
        <source>Search chats</source>
        <translation>搜索对话</translation>
    </message>
    <message>
        <source>Clear the search</source>
        <translation>清除搜索</translation>
    </message>
</context>
<context>
    <name>SearchList</name>
    <message>
        <source>Chats found</source>
        <translation>找到的对话</translation>
    </message>
</context>
<context>
    <name>Settings</name>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Draft recipe</source>
        <translation>草稿配方</translation>
    </message>
    <message>
        <source>how the cheap variant is made</source>
        <translation>低成本变体的做法</translation>
    </message>
    <message>
        <source>Sampling</source>
        <translation>采样</translation>
    </message>
    <message>
        <source>how the full model chooses a token</source>
        <translation>完整模型怎样选择词元</translation>
    </message>
    <message>
        <source>System prompt</source>
        <translation>系统提示词</translation>
    </message>
    <message>
        <source>Appearance</source>
        <translation>外观</translation>
    </message>
    <message>
        <source>All</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>Speculation</source>
        <translation>推测解码</translation>
    </message>
    <message>
        <source>Draft several tokens cheaply and check them at once.</source>
        <translation>以低成本起草几个词元，再一次检验。</translation>
    </message>
    <message>
        <source>Recipe</source>
        <translation>配方</translation>
    </message>
    <message>
        <source>Automatic takes what calibration found, or else the model&apos;s default.</source>
        <translation>自动：采用校准的结果，没有则用模型的默认值。</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>My own</source>
        <translation>自定</translation>
    </message>
    <message>
        <source>Draft weights</source>
        <translation>草稿权重</translation>
    </message>
    <message>
        <source>Fewer bits draft faster and miss more often.</source>
        <translation>位数越少，起草越快，也越容易猜错。</translation>
    </message>
    <message>
        <source>Same</source>
        <translation>相同</translation>
    </message>
    <message>
        <source>8 bit</source>
        <translation>8 位</translation>
    </message>
    <message>
        <source>4 bit</source>
        <translation>4 位</translation>
    </message>
    <message>
        <source>3 bit</source>
        <translation>3 位</translation>
    </message>
    <message>
        <source>Output tokens</source>
        <translation>输出词元</translation>
    </message>
    <message>
        <source>The draft proposes only the most frequent tokens and those of the chat.</source>
        <translation>草稿只从最常见的词元和对话中的词元里选。</translation>
    </message>
    <message>
        <source>Input channels dropped</source>
        <translation>丢弃的输入通道</translation>
    </message>
    <message>
        <source>Small inputs of each matrix count as zero, and their weights are not read.</source>
        <translation>每个矩阵的小输入按零计，对应的权重不读取。</translation>
    </message>
    <message>
        <source>MLP neurons kept</source>
        <translation>保留的 MLP 神经元</translation>
    </message>
    <message>
        <source>A predictor leaves the others out of the draft.</source>
        <translation>其余的由预测器从草稿中略去。</translation>
    </message>
    <message>
        <source>Attention heads kept</source>
        <translation>保留的注意力头</translation>
    </message>
    <message>
        <source>Skipped sub-layers</source>
        <translation>跳过的子层</translation>
    </message>
    <message>
        <source>Attention blocks left out of the draft.</source>
        <translation>草稿中略去的注意力子层。</translation>
    </message>
    <message>
        <source>Positions attended to</source>
        <translation>回看的位置</translation>
    </message>
    <message>
        <source>The draft looks back no further than this in long chats.</source>
        <translation>在长对话中，草稿最多回看这么远。</translation>
    </message>
    <message>
        <source>Draft length γ</source>
        <translation>草稿长度 γ</translation>
    </message>
    <message>
        <source>Automatic follows the measured gain and stops drafting when it loses.</source>
        <translation>自动：跟随实测收益，不划算时停止起草。</translation>
    </message>
    <message>
        <source>Fixed</source>
        <translation>固定</translation>
    </message>
    <message>
        <source>Fixed γ</source>
        <translation>固定 γ</translation>
    </message>
    <message>
        <source>Tokens drafted in each cycle when γ is fixed.</source>
        <translation>γ 固定时每个周期起草的词元数。</translation>
    </message>
    <message>
        <source>A model folder or a GGUF file on this computer.</source>
        <translation>这台电脑上的模型文件夹或 GGUF 文件。</translation>
    </message>
    <message>
        <source>Context length</source>
        <translation>上下文长度</translation>
    </message>
    <message>
        <source>The most tokens that a chat can hold.</source>
        <translation>一个对话最多容纳的词元数。</translation>
    </message>
    <message>
        <source>As the model</source>
        <translation>按模型</translation>
    </message>
    <message>
        <source>Virtual memory</source>
        <translation>虚拟内存</translation>
    </message>
    <message>
        <source>The KV cache takes memory only for tokens that exist.</source>
        <translation>KV 缓存只为已有的词元占用内存。</translation>
    </message>
    <message>
        <source>Memory budget</source>
        <translation>内存预算</translation>
    </message>
    <message>
        <source>Of the card, or of RAM without one. Parts that do not fit are streamed; no token changes.</source>
        <translation>显存的预算；没有显卡时是内存的预算。放不下的部分流式读取，词元不变。</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>0 always takes the best token (greedy).</source>
        <translation>0 表示总是取最佳词元（贪心）。</translation>
    </message>
    <message>
        <source>Top-k</source>
        <translation>Top-k</translation>
    </message>
    <message>
        <source>Only the k best tokens stay; 0 keeps all.</source>
        <translation>只保留最佳的 k 个词元；0 表示全部保留。</translation>
    </message>
    <message>
        <source>Top-p</source>
        <translation>Top-p</translation>
    </message>
    <message>
        <source>Only the best tokens that hold this share of the probability stay.</source>
        <translation>只保留合计占这么多概率的最佳词元。</translation>
    </message>
    <message>
        <source>Min-p</source>
        <translation>Min-p</translation>
    </message>
    <message>
        <source>Tokens below this share of the best one are dropped.</source>
        <translation>概率低于最佳词元这一比例的词元会被去掉。</translation>
    </message>
    <message>
        <source>Repetition penalty</source>
        <translation>重复惩罚</translation>
    </message>
    <message>
        <source>Above 1, tokens already in the text become less likely.</source>
        <translation>大于 1 时，文中已有的词元更不容易出现。</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>随机种子</translation>
    </message>
    <message>
        <source>The same seed gives the same reply; empty draws a new one.</source>
        <translation>种子相同，回复相同；留空则每次随机。</translation>
    </message>
    <message>
        <source>Longest reply</source>
        <translation>最长回复</translation>
    </message>
    <message>
        <source>Tokens after which a reply is cut.</source>
        <translation>回复超过这么多词元就截断。</translation>
    </message>
    <message>
        <source>Instructions</source>
        <translation>指令</translation>
    </message>
    <message>
        <source>Put before every chat as its system prompt. Empty leaves it to the model&apos;s template.</source>
        <translation>作为系统提示词放在每个对话之前。留空则由模型的模板决定。</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>主题</translation>
    </message>
    <message>
        <source>Colours of the window.</source>
        <translation>窗口的配色。</translation>
    </message>
    <message>
        <source>System</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>High contrast</source>
        <translation>高对比度</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>语言</translation>
    </message>
    <message>
        <source>Of the window. What the engine says of files and devices stays English.</source>
        <translation>窗口的语言。引擎关于文件和设备的说明仍为英文。</translation>
    </message>
    <message>
        <source>Keep ghosts</source>
        <translation>保留残影</translation>
    </message>
    <message>
        <source>Rejected guesses stay in the text, struck through, instead of fading.</source>
        <translation>被拒绝的猜测加删除线留在文中，不再淡出。</translation>
    </message>
    <message>
        <source>Send with</source>
        <translation>发送按键</translation>
    </message>
    <message>
        <source>Shift+Enter, or Enter where Ctrl+Enter sends, begins a new line.</source>
        <translation>Shift+Enter 换行；用 Ctrl+Enter 发送时，Enter 换行。</translation>
    </message>
    <message>
        <source>on</source>
        <translation>开</translation>
    </message>
    <message>
        <source>off</source>
        <translation>关</translation>
    </message>
    <message>
        <source>random</source>
        <translation>随机</translation>
    </message>
    <message>
        <source>{low} to {high}, default {default}.</source>
        <translation>范围 {low} 到 {high}，默认 {default}。</translation>
    </message>
    <message>
        <source>Default: what is free.</source>
        <translation>默认：全部可用内存。</translation>
    </message>
    <message>
        <source>Default: {default}.</source>
        <translation>默认：{default}。</translation>
    </message>
</context>
<context>
    <name>SettingsPane</name>
    <message>
        <source>Back to chat</source>
        <translation>返回对话</translation>
    </message>
    <message>
        <source>Reset to defaults</source>
        <translation>恢复默认值</translation>
    </message>
    <message>
        <source>Simple</source>
        <translation>简单</translation>
    </message>
    <message>
        <source>Expert</source>
        <translation>专家</translation>
    </message>
    <message>
        <source>Settings shown</source>
        <translation>显示的设置</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Reset</source>
        <translation>重置</translation>
    </message>
    <message>
        <source>Reset: {group}</source>
        <translation>重置：{group}</translation>
    </message>
    <message>
        <source>Puts all settings of this group back to their defaults, also those of expert mode.</source>
        <translation>把这一组的全部设置恢复为默认值，包括专家模式中的设置。</translation>
    </message>
    <message>
        <source>Not possible for this model on this device.</source>
        <translation>这个模型在此设备上不支持。</translation>
    </message>
    <message>
        <source>Not all are possible for this model on this device.</source>
        <translation>这个模型在此设备上只支持其中一部分。</translation>
    </message>
    <message>
        <source>{usual}; kept for {model}</source>
        <translation>{usual}；为 {model} 保留</translation>
    </message>
    <message>
        <source>Changed settings of expert mode: {count}. Show them</source>
        <translation>专家模式中有 {count} 项设置已更改。显示</translation>
    </message>
</context>
<context>
    <name>SettingsSide</name>
    <message>
        <source>Back to chat</source>
        <translation>返回对话</translation>
    </message>
    <message>
        <source>Esc</source>
        <translation>Esc</translation>
    </message>
    <message>
        <source>Groups of settings</source>
        <translation>设置分组</translation>
    </message>
</context>
<context>
    <name>ShortcutsSheet</name>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>键盘快捷键</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
</context>
<context>
    <name>SiblingPager</name>
    <message>
        <source>Earlier version</source>
        <translation>上一个版本</translation>
    </message>
    <message>
        <source>Later version</source>
        <translation>下一个版本</translation>
    </message>
    <message>
        <source>Version {place} of {count}</source>
        <translation>第 {place} 个版本，共 {count} 个</translation>
    </message>
</context>
<context>
    <name>SideBar</name>
    <message>
        <source>New chat (Ctrl+N)</source>
        <translation>新对话（Ctrl+N）</translation>
    </message>
    <message>
        <source>Nothing found</source>
        <translation>没有找到</translation>
    </message>
    <message>
        <source>Chats of this run are not kept</source>
        <translation>本次运行的对话不会保存</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Settings (Ctrl+,)</source>
        <translation>设置（Ctrl+,）</translation>
    </message>
    <message>
        <source>Import chat…</source>
        <translation>导入对话…</translation>
    </message>
    <message>
        <source>More about chats</source>
        <translation>更多对话操作</translation>
    </message>
</context>
<context>
    <name>SpeedSection</name>
    <message>
        <source>Tokens per cycle</source>
        <translation>每周期词元</translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation>词元/秒</translation>
    </message>
    <message>
        <source>Share of the cycles that added 1, 2, … tokens to the reply, in per cent</source>
        <translation>为回复增加 1、2、… 个词元的周期所占百分比</translation>
    </message>
    <message>
        <source>Tokens a second without the reading of the prompt</source>
        <translation>每秒词元数，不含读取提示词</translation>
    </message>
    <message>
        <source>Speed over time</source>
        <translation>速度随时间的变化</translation>
    </message>
    <message>
        <source>speed</source>
        <translation>速度</translation>
    </message>
    <message>
        <source>plain, measured {value}</source>
        <translation>普通解码实测 {value}</translation>
    </message>
    <message>
        <source>no cycles yet</source>
        <translation>还没有周期</translation>
    </message>
</context>
<context>
    <name>StarterFetch</name>
    <message>
        <source>The starter model could not be fetched.</source>
        <translation>无法下载入门模型。</translation>
    </message>
    <message>
        <source>The starter model could not be fetched: {cause}.</source>
        <translation>无法下载入门模型：{cause}。</translation>
    </message>
</context>
<context>
    <name>StateWord</name>
    <message>
        <source>accepted</source>
        <translation>已接受</translation>
    </message>
    <message>
        <source>rejected</source>
        <translation>已拒绝</translation>
    </message>
    <message>
        <source>correction</source>
        <translation>修正</translation>
    </message>
    <message>
        <source>bonus</source>
        <translation>额外</translation>
    </message>
    <message>
        <source>plain</source>
        <translation>普通</translation>
    </message>
    <message>
        <source>given</source>
        <translation>给定</translation>
    </message>
</context>
<context>
    <name>StatusLine</name>
    <message>
        <source>No model</source>
        <translation>没有模型</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>正在加载</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>就绪</translation>
    </message>
    <message>
        <source>Generating</source>
        <translation>正在生成</translation>
    </message>
    <message>
        <source>Stopping</source>
        <translation>正在停止</translation>
    </message>
    <message>
        <source>Proving</source>
        <translation>正在验证</translation>
    </message>
    <message>
        <source>Calibrating</source>
        <translation>正在校准</translation>
    </message>
    <message>
        <source>Benchmarking</source>
        <translation>正在基准测试</translation>
    </message>
    <message>
        <source>Unloading</source>
        <translation>正在卸载</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>Closing</source>
        <translation>正在关闭</translation>
    </message>
    <message>
        <source>Status</source>
        <translation>状态</translation>
    </message>
    <message>
        <source>tok/s</source>
        <translation>词元/秒</translation>
    </message>
    <message>
        <source>acceptance</source>
        <translation>接受率</translation>
    </message>
    <message>
        <source>tokens per cycle</source>
        <translation>词元/周期</translation>
    </message>
    <message>
        <source>plain</source>
        <translation>普通解码</translation>
    </message>
    <message>
        <source>lossless</source>
        <translation>无损</translation>
    </message>
    <message>
        <source>The draft only proposes. The full model checks every token, so a greedy reply is the one that plain
decoding gives, token for token, and a sampled reply has exactly the full model&apos;s distribution.</source>
        <translation>草稿只是提议。完整模型检验每个词元，所以贪心回复与普通解码
逐词元相同，采样回复的分布与完整模型完全一致。</translation>
    </message>
    <message>
        <source>Loading, then your message is sent</source>
        <translation>正在加载，之后发送你的消息</translation>
    </message>
    <message>
        <source>Reading the prompt, {done} of {total} tokens</source>
        <translation>正在读取提示词，{done} / {total} 词元</translation>
    </message>
    <message>
        <source>Nothing was drafted in this reply.</source>
        <translation>这条回复没有使用草稿。</translation>
    </message>
    <message>
        <source>No time was measured.</source>
        <translation>没有测到时间。</translation>
    </message>
    <message>
        <source>Plain decoding has not been measured yet.</source>
        <translation>还没有测量普通解码。</translation>
    </message>
    <message>
        <source>speed-up</source>
        <translation>加速</translation>
    </message>
    <message>
        <source>plain, slower than plain, measured {rate} tok/s</source>
        <translation>于普通解码，更慢（实测 {rate} 词元/秒）</translation>
    </message>
    <message>
        <source>plain, measured {rate} tok/s</source>
        <translation>于普通解码（实测 {rate} 词元/秒）</translation>
    </message>
</context>
<context>
    <name>TextFiles</name>
    <message>
        <source>“{name}” is not a file.</source>
        <translation>“{name}”不是文件。</translation>
    </message>
    <message>
        <source>“{name}” cannot be read: {cause}.</source>
        <translation>无法读取“{name}”：{cause}。</translation>
    </message>
    <message>
        <source>“{name}” is larger than 1 MB, the most that is taken.</source>
        <translation>“{name}”超过 1 MB 的上限。</translation>
    </message>
    <message>
        <source>“{name}” is not a text file.</source>
        <translation>“{name}”不是文本文件。</translation>
    </message>
    <message>
        <source>“{name}” is not text in UTF-8.</source>
        <translation>“{name}”不是 UTF-8 文本。</translation>
    </message>
    <message>
        <source>“{name}” is empty.</source>
        <translation>“{name}”是空的。</translation>
    </message>
</context>
<context>
    <name>TimePlot</name>
    <message>
        <source>no cycles yet</source>
        <translation>还没有周期</translation>
    </message>
    <message>
        <source>{name} {value}</source>
        <translation>{name} {value}</translation>
    </message>
    <message>
        <source>nothing measured</source>
        <translation>没有测量值</translation>
    </message>
    <message>
        <source>−{seconds} s</source>
        <translation>−{seconds} 秒</translation>
    </message>
    <message>
        <source>now</source>
        <translation>现在</translation>
    </message>
</context>
<context>
    <name>TokenCard</name>
    <message>
        <source>Token</source>
        <translation>词元</translation>
    </message>
    <message>
        <source>Alt and the arrows go from token to token, and from cycle to cycle</source>
        <translation>Alt 加方向键在词元之间、周期之间移动</translation>
    </message>
    <message>
        <source>id {id}</source>
        <translation>编号 {id}</translation>
    </message>
    <message>
        <source>Regenerate with “{piece}”</source>
        <translation>改用“{piece}”重新生成</translation>
    </message>
    <message>
        <source>Chance that the draft agrees here: {share} %.</source>
        <translation>草稿在此处一致的机会：{share} %。</translation>
    </message>
    <message>
        <source>The draft&apos;s figures are of the recipe in force now.</source>
        <translation>草稿的数字来自当前配方。</translation>
    </message>
    <message>
        <source>Rank {full} for the full model, {draft} for the draft.</source>
        <translation>在完整模型中排第 {full}，在草稿中排第 {draft}。</translation>
    </message>
    <message>
        <source>n/a</source>
        <translation>无数据</translation>
    </message>
    <message>
        <source>{share} ms, its share of a cycle of {cycle} ms.</source>
        <translation>{share} 毫秒，为 {cycle} 毫秒的周期中它的一份。</translation>
    </message>
</context>
<context>
    <name>TokenCards</name>
    <message>
        <source>Rivals and ranks are computed when the engine is free.</source>
        <translation>引擎空闲时计算其他候选和排名。</translation>
    </message>
    <message>
        <source>Looking at rivals and ranks…</source>
        <translation>正在计算其他候选和排名…</translation>
    </message>
    <message>
        <source>A stored reply shows what was recorded; rivals need the model that wrote it.</source>
        <translation>已保存的回复只显示记录的内容；其他候选需要写出它的模型。</translation>
    </message>
    <message>
        <source>Rivals need the model that wrote this reply.</source>
        <translation>其他候选需要写出这条回复的模型。</translation>
    </message>
</context>
<context>
    <name>TokenText</name>
    <message>
        <source>Part of a link to {address}. Ctrl+Enter opens it.</source>
        <translation>属于指向 {address} 的链接，按 Ctrl+Enter 打开。</translation>
    </message>
</context>
<context>
    <name>TokenWords</name>
    <message>
        <source>n/a</source>
        <translation>无数据</translation>
    </message>
    <message>
        <source>space</source>
        <translation>空格</translation>
    </message>
    <message>
        <source>given: kept or chosen when this reply was begun from here.</source>
        <translation>给定：从这里重新生成回复时保留或选定的词元。</translation>
    </message>
    <message>
        <source>Text that was held back until the reply ended.</source>
        <translation>直到回复结束才放出的文字。</translation>
    </message>
    <message>
        <source>accepted: cycle {cycle}, second choice at draft position {position} of {drafted}, tried in the same pass. The draft gave it {second_draft}, the full model {second_full}; its first choice “{guess}” ({guess_draft}) was wrong.</source>
        <translation>已接受：周期 {cycle}，草稿位置 {position} / {drafted} 的第二选择，在同一次计算中检验。草稿给它 {second_draft}，完整模型给它 {second_full}；第一选择“{guess}”（{guess_draft}）错了。</translation>
    </message>
    <message>
        <source>bonus: cycle {cycle}. The draft&apos;s second choice was accepted; the full model added this token in the same pass ({own}).</source>
        <translation>额外：周期 {cycle}。草稿的第二选择被接受；完整模型在同一次计算中加上了这个词元（{own}）。</translation>
    </message>
    <message>
        <source>accepted: cycle {cycle}, draft position {position} of {drafted}. The draft gave it {draft}, the full model {full}.</source>
        <translation>已接受：周期 {cycle}，草稿位置 {position} / {drafted}。草稿给它 {draft}，完整模型给它 {full}。</translation>
    </message>
    <message>
        <source>bonus: cycle {cycle}. All {drafted} drafts were accepted; the full model added this token in the same pass ({own}).</source>
        <translation>额外：周期 {cycle}。{drafted} 个草稿全部被接受；完整模型在同一次计算中加上了这个词元（{own}）。</translation>
    </message>
    <message>
        <source>plain: step {cycle}, decoded without a draft ({own}).</source>
        <translation>普通：第 {cycle} 步，没有草稿，直接解码（{own}）。</translation>
    </message>
    <message>
        <source>correction: cycle {cycle}, draft position {wrong} of {drafted}. The draft proposed “{guess}” ({guess_draft}), the full model chose this ({own}).</source>
        <translation>修正：周期 {cycle}，草稿位置 {wrong} / {drafted}。草稿提议“{guess}”（{guess_draft}），完整模型选了这个（{own}）。</translation>
    </message>
    <message>
        <source>rejected: cycle {cycle}, draft position {wrong} of {drafted}. The draft proposed “{guess}” ({guess_draft}); the full model gave it {guess_full} and chose “{choice}” ({chosen}).</source>
        <translation>已拒绝：周期 {cycle}，草稿位置 {wrong} / {drafted}。草稿提议“{guess}”（{guess_draft}）；完整模型给它 {guess_full}，选了“{choice}”（{chosen}）。</translation>
    </message>
    <message>
        <source>Not tested after it: “{untested}”.</source>
        <translation>它之后没有检验：“{untested}”。</translation>
    </message>
</context>
<context>
    <name>TokensPlot</name>
    <message>
        <source>Tokens per cycle</source>
        <translation>每周期词元</translation>
    </message>
    <message>
        <source>no cycles yet</source>
        <translation>还没有周期</translation>
    </message>
    <message>
        <source>mean {mean}</source>
        <translation>平均 {mean}</translation>
    </message>
</context>
<context>
    <name>TopBar</name>
    <message>
        <source>Show or hide the chats (Ctrl+B)</source>
        <translation>显示或隐藏对话列表（Ctrl+B）</translation>
    </message>
    <message>
        <source>Prove it</source>
        <translation>对比验证</translation>
    </message>
    <message>
        <source>Replay</source>
        <translation>回放</translation>
    </message>
    <message>
        <source>Play the last reply again, as it was written</source>
        <translation>按生成时的样子回放最后一条回复</translation>
    </message>
    <message>
        <source>Report</source>
        <translation>报告</translation>
    </message>
    <message>
        <source>Export the last reply as a page, a picture and a replay</source>
        <translation>把最后一条回复导出为网页、图片和回放</translation>
    </message>
    <message>
        <source>Dark theme</source>
        <translation>深色主题</translation>
    </message>
    <message>
        <source>Settings (Ctrl+,)</source>
        <translation>设置（Ctrl+,）</translation>
    </message>
    <message>
        <source>Show or hide the cockpit (Ctrl+J)</source>
        <translation>显示或隐藏驾驶舱（Ctrl+J）</translation>
    </message>
    <message>
        <source>Compare speculation with plain decoding, token for token and bit for bit</source>
        <translation>逐词元、逐位比较推测解码和普通解码</translation>
    </message>
    <message>
        <source>Possible when a model is loaded and no reply is being written</source>
        <translation>加载模型后，且没有正在生成的回复时可用</translation>
    </message>
    <message>
        <source>Light theme</source>
        <translation>浅色主题</translation>
    </message>
</context>
<context>
    <name>UndoToast</name>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
    <message>
        <source>Dismiss</source>
        <translation>关闭提示</translation>
    </message>
</context>
<context>
    <name>UseSection</name>
    <message>
        <source>GPU use</source>
        <translation>GPU 使用率</translation>
    </message>
    <message>
        <source>CPU use</source>
        <translation>CPU 使用率</translation>
    </message>
    <message>
        <source>Share of the time in which something ran on the card, in per cent</source>
        <translation>显卡上有任务运行的时间百分比</translation>
    </message>
    <message>
        <source>Share of all processors in use, and by this program, in per cent</source>
        <translation>全部处理器的使用百分比，以及本程序所占部分</translation>
    </message>
    <message>
        <source>all</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>this program</source>
        <translation>本程序</translation>
    </message>
    <message>
        <source>GPU use over time</source>
        <translation>GPU 使用率随时间的变化</translation>
    </message>
    <message>
        <source>card</source>
        <translation>显卡</translation>
    </message>
    <message>
        <source>CPU use over time</source>
        <translation>CPU 使用率随时间的变化</translation>
    </message>
    <message>
        <source>The model is not on a card.</source>
        <translation>模型不在显卡上。</translation>
    </message>
    <message>
        <source>not on a card</source>
        <translation>不在显卡上</translation>
    </message>
</context>
<context>
    <name>UserBubble</name>
    <message>
        <source>Edit message</source>
        <translation>修改消息</translation>
    </message>
    <message>
        <source>{count} characters</source>
        <translation>{count} 个字符</translation>
    </message>
    <message>
        <source>Show all</source>
        <translation>显示全部</translation>
    </message>
    <message>
        <source>Show less</source>
        <translation>收起</translation>
    </message>
</context>
<context>
    <name>Verdict</name>
    <message>
        <source>Turn speculation off</source>
        <translation>关闭推测</translation>
    </message>
    <message>
        <source>Turn speculation on</source>
        <translation>开启推测</translation>
    </message>
    <message>
        <source>Use the calibrated draft</source>
        <translation>使用校准的草稿</translation>
    </message>
    <message>
        <source>Choose the length automatically</source>
        <translation>自动选择长度</translation>
    </message>
    <message>
        <source>Measure the best draft</source>
        <translation>测量最佳草稿</translation>
    </message>
    <message>
        <source>No reply yet: once there is one, this says how fast it is, and why.</source>
        <translation>还没有回复：有了之后，这里会说明它有多快、为什么。</translation>
    </message>
    <message>
        <source>Plain decoding, {speed} tok/s: speculation was off for this reply. It is on now.</source>
        <translation>普通解码，{speed} 词元/秒：这条回复没有开启推测。现在已开启。</translation>
    </message>
    <message>
        <source>Plain decoding, {speed} tok/s: speculation is off. An earlier reply ran at {factor} with it.</source>
        <translation>普通解码，{speed} 词元/秒：推测已关闭。之前有一条回复开启推测后达到 {factor}。</translation>
    </message>
    <message>
        <source>Plain decoding, {speed} tok/s: speculation is off. Its gain is known after one reply with it.</source>
        <translation>普通解码，{speed} 词元/秒：推测已关闭。开启后生成一条回复即可知道收益。</translation>
    </message>
    <message>
        <source>As fast as plain, {speed} tok/s: drafts would cost more than they bring here. Nothing to change.</source>
        <translation>与普通解码一样快，{speed} 词元/秒：在这里起草得不偿失。无需更改。</translation>
    </message>
    <message>
        <source>{speed} tok/s so far. Why, and what would help, is said after a few more cycles.</source>
        <translation>目前 {speed} 词元/秒。再过几个周期会说明原因和改进办法。</translation>
    </message>
    <message>
        <source>Slower than plain ({factor}): {accepted} of drafts were right. Speculation is off from now on.</source>
        <translation>比普通解码慢（{factor}）：{accepted} 的草稿正确。从现在起推测已关闭。</translation>
    </message>
    <message>
        <source>Slower than plain ({factor}): {accepted} of drafts are right at {cost} of a plain step each. A fitting length: {speed} tok/s.</source>
        <translation>比普通解码慢（{factor}）：{accepted} 的草稿正确，每个的成本是普通解码一步的 {cost}。长度合适时：{speed} 词元/秒。</translation>
    </message>
    <message>
        <source>Slower than plain ({factor}): at {cost} of a plain step each, no draft pays here. Plain decoding: {speed} tok/s.</source>
        <translation>比普通解码慢（{factor}）：每个草稿的成本是普通解码一步的 {cost}，在这里不划算。普通解码：{speed} 词元/秒。</translation>
    </message>
    <message>
        <source>Slower than plain ({factor}): {accepted} of drafts are right, {needed} must be to pay. Plain decoding: {speed} tok/s.</source>
        <translation>比普通解码慢（{factor}）：{accepted} 的草稿正确，达到 {needed} 才划算。普通解码：{speed} 词元/秒。</translation>
    </message>
    <message>
        <source>{factor} plain; {share} of each cycle waits for streamed parts. With all of them on the card: {speed} tok/s at most.</source>
        <translation>普通解码的 {factor}；每周期 {share} 的时间在等待流式部分。全部放在显卡上最多 {speed} 词元/秒。</translation>
    </message>
    <message>
        <source>{factor} plain; later drafts of a cycle are too often wrong to pay. {gamma} at a time: about {speed} tok/s.</source>
        <translation>普通解码的 {factor}；每周期靠后的草稿错得太多，不划算。每次 {gamma} 个：约 {speed} 词元/秒。</translation>
    </message>
    <message>
        <source>Draft {gamma} at a time</source>
        <translation>每次起草 {gamma} 个</translation>
    </message>
    <message>
        <source>{factor} plain with your own draft recipe. With the model&apos;s, an earlier reply ran at {earlier}.</source>
        <translation>用自定的草稿配方是普通解码的 {factor}。用模型的配方，之前有一条回复达到 {earlier}。</translation>
    </message>
    <message>
        <source>{factor} plain: {accepted} of drafts are right at {cost} of a plain step each. No draft has been measured here yet.</source>
        <translation>普通解码的 {factor}：{accepted} 的草稿正确，每个的成本是普通解码一步的 {cost}。还没有在本机测量过草稿。</translation>
    </message>
    <message>
        <source>{factor} plain: {accepted} of drafts are right and each costs {cost} of a plain step. Nothing to change.</source>
        <translation>普通解码的 {factor}：{accepted} 的草稿正确，每个的成本是普通解码一步的 {cost}。无需更改。</translation>
    </message>
    <message>
        <source>{factor} plain; {share} of each cycle waits for streamed parts. {budget} GB keep {kept} of {count}: about {speed} tok/s.</source>
        <translation>普通解码的 {factor}；每周期 {share} 的时间在等待流式部分。预算 {budget} GB 可留住 {count} 个中的 {kept} 个：约 {speed} 词元/秒。</translation>
    </message>
    <message>
        <source>Raise the budget to {budget} GB</source>
        <translation>把预算提高到 {budget} GB</translation>
    </message>
    <message>
        <source>not measured yet in this reply</source>
        <translation>这条回复还没有测量</translation>
    </message>
    <message>
        <source>Speed</source>
        <translation>速度</translation>
    </message>
    <message>
        <source>without reading the prompt</source>
        <translation>不含读取提示词</translation>
    </message>
    <message>
        <source>Plain decoding</source>
        <translation>普通解码</translation>
    </message>
    <message>
        <source>measured on this model, not estimated</source>
        <translation>在这个模型上实测，不是估计</translation>
    </message>
    <message>
        <source>Speed-up S</source>
        <translation>加速 S</translation>
    </message>
    <message>
        <source>the first over the second</source>
        <translation>前者除以后者</translation>
    </message>
    <message>
        <source>Acceptance</source>
        <translation>接受率</translation>
    </message>
    <message>
        <source>accepted over tested drafts</source>
        <translation>接受的草稿除以检验过的草稿</translation>
    </message>
    <message>
        <source>Draft step c</source>
        <translation>草稿一步 c</translation>
    </message>
    <message>
        <source>its time in plain steps</source>
        <translation>用时，以普通解码一步计</translation>
    </message>
    <message>
        <source>Verify pass v</source>
        <translation>一次验证 v</translation>
    </message>
    <message>
        <source>Tokens per cycle</source>
        <translation>每周期词元</translation>
    </message>
    <message>
        <source>S is these over drafts × c + v</source>
        <translation>S 等于它除以（草稿数 × c + v）</translation>
    </message>
    <message>
        <source>Draft · verify · wait</source>
        <translation>草稿 · 验证 · 等待</translation>
    </message>
    <message>
        <source>where the time of a cycle goes</source>
        <translation>一个周期的时间用在哪里</translation>
    </message>
    <message>
        <source>{speed} tok/s</source>
        <translation>{speed} 词元/秒</translation>
    </message>
    <message>
        <source>{value}×</source>
        <translation>{value} 倍</translation>
    </message>
</context>
<context>
    <name>VerdictCard</name>
    <message>
        <source>Why this speed</source>
        <translation>速度说明</translation>
    </message>
    <message>
        <source>Explain</source>
        <translation>详细解释</translation>
    </message>
    <message>
        <source>The figures behind this sentence</source>
        <translation>这句话所依据的数字</translation>
    </message>
</context>
<context>
    <name>WindowCommands</name>
    <message>
        <source>Replay the last reply</source>
        <translation>回放最后一条回复</translation>
    </message>
    <message>
        <source>Export a report of the last reply…</source>
        <translation>导出最后一条回复的报告…</translation>
    </message>
    <message>
        <source>Models of this computer…</source>
        <translation>这台计算机上的模型…</translation>
    </message>
    <message>
        <source>Open a model folder…</source>
        <translation>打开模型文件夹…</translation>
    </message>
    <message>
        <source>Open a GGUF file…</source>
        <translation>打开 GGUF 文件…</translation>
    </message>
    <message>
        <source>Load the starter model</source>
        <translation>加载入门模型</translation>
    </message>
    <message>
        <source>Restart the engine</source>
        <translation>重新启动引擎</translation>
    </message>
    <message>
        <source>Unload the model</source>
        <translation>卸载模型</translation>
    </message>
    <message>
        <source>Prove it: compare with plain decoding…</source>
        <translation>对比验证：与普通解码比较…</translation>
    </message>
    <message>
        <source>Calibrate the draft…</source>
        <translation>校准草稿…</translation>
    </message>
    <message>
        <source>Benchmark: a few questions both ways…</source>
        <translation>基准测试：用两种方式回答几道题…</translation>
    </message>
    <message>
        <source>Watch the demo</source>
        <translation>观看演示</translation>
    </message>
    <message>
        <source>Open a replay…</source>
        <translation>打开回放…</translation>
    </message>
    <message>
        <source>Light or dark theme</source>
        <translation>浅色或深色主题</translation>
    </message>
    <message>
        <source>Commands</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>键盘快捷键</translation>
    </message>
    <message>
        <source>Add Specular to the desktop&apos;s menu</source>
        <translation>把 Specular 加入桌面菜单</translation>
    </message>
    <message>
        <source>Take Specular out of the desktop&apos;s menu</source>
        <translation>把 Specular 从桌面菜单移除</translation>
    </message>
    <message>
        <source>Show the log</source>
        <translation>显示日志</translation>
    </message>
    <message>
        <source>Copy diagnostics</source>
        <translation>复制诊断信息</translation>
    </message>
    <message>
        <source>The diagnostics are in the clipboard.</source>
        <translation>诊断信息已放入剪贴板。</translation>
    </message>
    <message>
        <source>Report of the last run</source>
        <translation>上次运行的报告</translation>
    </message>
</context>
<context>
    <name>_Body</name>
    <message>
        <source>Your message</source>
        <translation>你的消息</translation>
    </message>
</context>
<context>
    <name>_ChipButton</name>
    <message>
        <source>Progress of the load</source>
        <translation>加载进度</translation>
    </message>
</context>
<context>
    <name>_EmptyState</name>
    <message>
        <source>Ask anything and watch the draft being checked, token by token.</source>
        <translation>随便问点什么，看草稿怎样被逐个词元检验。</translation>
    </message>
    <message>
        <source>Suggestion: {text}</source>
        <translation>建议：{text}</translation>
    </message>
    <message>
        <source>Why is the sky blue?</source>
        <translation>天空为什么是蓝色的？</translation>
    </message>
    <message>
        <source>Write a short story about a lighthouse.</source>
        <translation>写一个关于灯塔的小故事。</translation>
    </message>
    <message>
        <source>Write a Python function that reverses a string.</source>
        <translation>写一个把字符串反转的 Python 函数。</translation>
    </message>
</context>
<context>
    <name>_Row</name>
    <message>
        <source>Leave out {name}</source>
        <translation>不附上 {name}</translation>
    </message>
    <message>
        <source>{name} · about {count} tokens</source>
        <translation>{name} · 约 {count} 个词元</translation>
    </message>
    <message>
        <source>{name} · {count} tokens</source>
        <translation>{name} · {count} 个词元</translation>
    </message>
</context>
</TS>
